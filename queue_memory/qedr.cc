// SPDX-License-Identifier: Apache-2.0
//
// qedr (Marvell FastLinQ): a chain of pages per ring, in the process. Rules
// from rdma-core providers/qedr: qelr_verbs.c (functions named below),
// qelr_chain.c. The kernel says how many elements an entry has; SGEs and inline
// data make no difference to sizes.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kElement = 16;
constexpr uint32_t kMostWr = 32767;
constexpr uint32_t kArrayBytesPerSend = 24;     // of one more than asked
constexpr uint32_t kArrayBytesPerReceive = 16;  // likewise
constexpr uint32_t kQueuePairStruct = 704;
constexpr uint32_t kCompletionQueueStruct = 248;
constexpr uint32_t kSharedReceiveQueueStruct = 256;  // about

Ring Chain(uint32_t wr, uint32_t elements) {
  return RingOf(uint64_t{elements} * kElement, wr);
}

// qelr_create_qp_buffers_sq and _rq, qelr_configure_qp_sq and _rq. More
// receives than the device takes are clipped without a word.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  DeviceLimits checked = limits;
  checked.max_recv_wr = UINT32_MAX;
  if (const Refusal refusal = CheckEach(checked, request))
    return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  const uint32_t sends = Max(request.max_send_wr, 1u);
  memory.send_ring = Chain(sends, limits.qedr.send_elements);
  memory.send.container =
      RoundUpToPages(memory.send_ring.bytes, limits.page_size);
  memory.arrays.container =
      uint64_t{kArrayBytesPerSend} * (uint64_t{sends} + 1);
  if (!request.uses_srq && request.type != QueuePairType::kXrcSend) {
    const uint32_t receives =
        Min(Max(request.max_recv_wr, 1u), limits.max_recv_wr);
    memory.receive_ring = Chain(receives, limits.qedr.receive_elements);
    memory.receive.container =
        RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
    memory.arrays.container +=
        uint64_t{kArrayBytesPerReceive} * (uint64_t{receives} + 1);
  }
  memory.buffer_bytes = memory.send.container + memory.receive.container;
  memory.overhead.container = kQueuePairStruct;
  if (request.uses_srq) memory.exactness = Exactness::kEstimated;
  return memory;
}

// qelr_create_cq. What the kernel answers is what the pages hold.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  const uint64_t bytes =
      RoundUpToPages((uint64_t{cqe} + 1) * limits.cqe_size, limits.page_size);
  QueueMemory memory;
  memory.completion_ring = {.stride = limits.cqe_size,
                            .slots = static_cast<uint32_t>(Min<uint64_t>(
                                bytes / limits.cqe_size, UINT32_MAX)),
                            .bytes = bytes};
  memory.cap_cqe = memory.completion_ring.slots;
  memory.completion.container = bytes;
  memory.buffer_bytes = bytes;
  memory.overhead.container = kCompletionQueueStruct;
  return memory;
}

// A header element beside the SGEs, and a page of producers.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  QueueMemory memory;
  memory.shared_receive_ring =
      Chain(request.max_wr, limits.qedr.receive_elements + 1);
  memory.cap_srq_wr = request.max_wr;
  memory.cap_srq_sge = request.max_sge;
  memory.shared_receive.container =
      RoundUpToPages(memory.shared_receive_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.shared_receive.container + limits.page_size;
  memory.overhead.container = kSharedReceiveQueueStruct + limits.page_size;
  return memory;
}

}  // namespace

// Counts: a FastLinQ 45000 as ibv_devinfo shows it.
constinit const ProviderRules kQedrRules = {
    .traits = {.provider = Provider::kQedr,
               .name = "qedr",
               .kernel_names = {"qedr", "qede"},
               .devices = "Marvell FastLinQ",
               .queue_pair_types =
                   Bit(QueuePairType::kRc) | Bit(QueuePairType::kXrcSend),
               .defaults = {.max_qp_wr = kMostWr,
                            .max_sge = 4,
                            .max_cqe = 8388480,
                            .max_inline_data = 256,
                            .cqe_size = 32,
                            .qedr = {.send_elements = 18,
                                     .receive_elements = 4}},
               .counts = {.max_qp = 8568, .max_cq = 17136, .max_mr = 131070}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
