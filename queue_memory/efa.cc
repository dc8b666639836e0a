// SPDX-License-Identifier: Apache-2.0
//
// efa (AWS): the send ring lies in the device, and the process keeps a copy of
// the same size; receive and completion rings are pages of the kernel, which no
// cgroup is charged for. Rules from rdma-core providers/efa/verbs.c (functions
// named below) and Linux drivers/infiniband/hw/efa/efa_verbs.c.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kDescriptor = 64;  // efa_io_tx_wqe
constexpr uint32_t kWideDescriptor = 128;
constexpr uint32_t kInlineOfDescriptor = 32;
constexpr uint32_t kReceiveDescriptor = 16;      // of one SGE
constexpr uint32_t kArrayBytesPerEntry = 8 + 4;  // wrid, index pool
constexpr uint32_t kQueuePairStruct = 704;
constexpr uint32_t kCompletionQueueStruct = 416;

// efa_calc_sq_wqe_size.
uint32_t SendDescriptor(const QueuePairRequest& request) {
  return request.max_inline_data > kInlineOfDescriptor ||
                 (request.send_ops & kSendOpsInlineWrite) != 0
             ? kWideDescriptor
             : kDescriptor;
}

// efa_calc_sq_max_depth, efa_calc_rq_max_depth.
Refusal Check(const DeviceLimits& limits, const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request)) return refusal;
  const uint32_t depth =
      std::bit_floor(limits.efa.max_llq_size / SendDescriptor(request));
  if (request.max_send_wr > depth)
    return {Limit::kMaxSendWr, request.max_send_wr, depth};
  // By which the provider divides.
  return RefuseBelow(Limit::kLeastRecvSge, request.max_recv_sge, 1);
}

// efa_setup_qp, efa_sq_initialize, efa_rq_initialize, efa_wq_initialize.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = Check(limits, request)) return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring =
      RingOf(SendDescriptor(request),
             NextPowerOfTwo(Max(request.max_send_wr, limits.efa.min_sq_wr)));
  memory.cap_send_wr = memory.send_ring.slots;
  memory.send.container = memory.send_ring.bytes;

  const uint64_t descriptors =
      NextPowerOfTwo(uint64_t{request.max_recv_wr} * request.max_recv_sge);
  memory.receive_ring = {.stride = kReceiveDescriptor * request.max_recv_sge,
                         .slots = static_cast<uint32_t>(Min<uint64_t>(
                             descriptors / request.max_recv_sge, UINT32_MAX)),
                         .bytes = descriptors * kReceiveDescriptor};
  memory.cap_recv_wr = memory.receive_ring.slots;
  memory.receive.node =
      RoundUpToPages(memory.receive_ring.bytes, limits.page_size);

  memory.buffer_bytes = memory.send.container + memory.receive.node;
  memory.arrays.container =
      uint64_t{kArrayBytesPerEntry} *
      ((limits.efa.wide_request_ids ? 0 : memory.send_ring.slots) +
       uint64_t{memory.receive_ring.slots});
  memory.overhead.container = kQueuePairStruct;
  if (limits.efa.wide_request_ids) memory.exactness = Exactness::kEstimated;
  return memory;
}

// create_cq.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  const uint64_t entries = NextPowerOfTwo(cqe);
  memory.completion_ring = RingOf(limits.cqe_size, entries);
  memory.completion_ring.bytes *= limits.efa.sub_cqs;
  memory.cap_cqe = memory.completion_ring.slots;
  memory.completion.node =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.completion.node;
  memory.overhead.container = kCompletionQueueStruct;
  return memory;
}

}  // namespace

constinit const ProviderRules kEfaRules = {
    .traits = {.provider = Provider::kEfa,
               .name = "efa",
               .kernel_names = {"efa"},
               .devices = "AWS Elastic Fabric Adapter",
               .queue_pair_types =
                   Bit(QueuePairType::kUd) | Bit(QueuePairType::kSrd),
               .has_shared_receive_queues = false,
               .charges_node = true,
               .pins_rings = false,
               .send_ops_change_sizes = true,
               .defaults = {.max_qp_wr = 4096,
                            .max_sge = 2,
                            .max_recv_wr = 32768,
                            .max_recv_sge = 3,
                            .max_inline_data = 80,
                            .cqe_size = 32,
                            .efa = {.max_llq_size = 262144}}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue};

}  // namespace purser::queue_memory
