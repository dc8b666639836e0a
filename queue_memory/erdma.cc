// SPDX-License-Identifier: Apache-2.0
//
// erdma (Alibaba): both rings in one buffer of the process. Rules from
// rdma-core providers/erdma/erdma_verbs.c (functions named below) and what the
// kernel answers. An entry is as large as can be, whatever the SGEs or inline
// data.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kUnit = 32;  // a send building block, a receive
constexpr uint32_t kUnitsPerSend = 4;
constexpr uint32_t kArrayBytesPerUnit = 8;  // wrid
constexpr uint32_t kLeastCqe = 64;
constexpr uint32_t kQueuePairStruct = 304;
constexpr uint32_t kCompletionQueueStruct = 208;
constexpr uint32_t kDoorbellRecord = 16;  // of a shared page; about

Refusal Check(const DeviceLimits& limits, const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request)) return refusal;
  if (const Refusal refusal =
          RefuseBelow(Limit::kLeastSendWr, request.max_send_wr, 1))
    return refusal;
  return RefuseBelow(Limit::kLeastRecvWr, request.max_recv_wr, 1);
}

// erdma_alloc_qp_buf_and_db, erdma_alloc_wrid_tbl.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = Check(limits, request)) return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  const uint64_t send_units =
      NextPowerOfTwo(uint64_t{kUnitsPerSend} * request.max_send_wr);
  const uint64_t receives = NextPowerOfTwo(request.max_recv_wr);
  memory.send_ring = RingOf(kUnit * kUnitsPerSend, send_units / kUnitsPerSend);
  memory.receive_ring = RingOf(kUnit, receives);
  memory.send.container =
      RoundUpToPages(memory.send_ring.bytes, limits.page_size);
  memory.receive.container =
      RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.send.container + memory.receive.container;
  memory.arrays.container = kArrayBytesPerUnit * (send_units + receives);
  memory.overhead.container = kQueuePairStruct + kDoorbellRecord;
  return memory;
}

// erdma_create_cq.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring =
      RingOf(limits.cqe_size, NextPowerOfTwo(Max(cqe, kLeastCqe)));
  memory.cap_cqe = memory.completion_ring.slots;
  memory.completion.container =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.completion.container;
  memory.overhead.container = kCompletionQueueStruct + kDoorbellRecord;
  return memory;
}

}  // namespace

// How many objects there are the adapter tells, in blocks of 1,024.
constinit const ProviderRules kErdmaRules = {
    .traits = {.provider = Provider::kErdma,
               .name = "erdma",
               .kernel_names = {"erdma"},
               .devices = "Alibaba Elastic RDMA",
               .queue_pair_types = Bit(QueuePairType::kRc),
               .has_shared_receive_queues = false,
               .defaults = {.max_qp_wr = 8192,
                            .max_sge = 6,
                            .max_cqe = 1048576,
                            .max_recv_sge = 1,
                            .max_inline_data = 96,
                            .cqe_size = 32}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue};

}  // namespace purser::queue_memory
