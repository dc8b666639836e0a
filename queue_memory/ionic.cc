// SPDX-License-Identifier: Apache-2.0
//
// ionic (AMD Pensando): one anonymous mapping per ring, in the process. An
// estimate: known is that strides and depths are powers of two and a ring a
// page at least (rdma-core providers/ionic); the sizes of headers and of the
// arrays beside the rings are assumed.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSge = 16;
constexpr uint32_t kSendHeader = 32;
constexpr uint32_t kReceiveHeader = 16;
constexpr uint32_t kLeastStride = 64;
constexpr uint32_t kArrayBytesPerSend = 64;
constexpr uint32_t kArrayBytesPerReceive = 24;
constexpr uint32_t kObjectStruct = 1024;

Ring Queue(uint64_t wr, uint64_t entry_bytes) {
  return RingWithSpare(NextPowerOfTwo(Max<uint64_t>(entry_bytes, kLeastStride)),
                       wr);
}

QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring =
      Queue(request.max_send_wr,
            kSendHeader + Max(uint64_t{kSge} * request.max_send_sge,
                              uint64_t{request.max_inline_data}));
  memory.receive_ring =
      Queue(request.max_recv_wr,
            kReceiveHeader + uint64_t{kSge} * request.max_recv_sge);
  memory.send.container =
      RoundUpToPages(memory.send_ring.bytes, limits.page_size);
  memory.receive.container =
      RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.send.container + memory.receive.container;
  memory.arrays.container =
      kArrayBytesPerSend * (uint64_t{memory.send_ring.slots} + 1) +
      kArrayBytesPerReceive * (uint64_t{memory.receive_ring.slots} + 1);
  memory.overhead.container = kObjectStruct;
  return memory;
}

QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = RingWithSpare(limits.cqe_size, cqe);
  memory.cap_cqe = memory.completion_ring.slots;
  memory.completion.container =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.completion.container;
  memory.overhead.container = kObjectStruct;
  return memory;
}

}  // namespace

// Limits: the kernel's ionic_ibdev.c ionic_query_device tells 65,535 requests,
// but a ring has at most 32,768 entries. How many objects there are the
// adapter's firmware tells.
constinit const ProviderRules kIonicRules = {
    .traits = {.provider = Provider::kIonic,
               .name = "ionic",
               .kernel_names = {"ionic_rdma", "ionic"},
               .devices = "AMD Pensando",
               .queue_pairs = Exactness::kEstimated,
               .completion_queues = Exactness::kEstimated,
               .queue_pair_types =
                   Bit(QueuePairType::kRc) | Bit(QueuePairType::kUd),
               .has_shared_receive_queues = false,
               .defaults = {.max_qp_wr = 32767,
                            .max_sge = 8,
                            .max_cqe = 65435,
                            .cqe_size = 64}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue};

}  // namespace purser::queue_memory
