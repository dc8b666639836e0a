// SPDX-License-Identifier: Apache-2.0
//
// cxgb4 (Chelsio T4 to T6, iWARP): the rings are the kernel's, coherent with
// the device, and the process maps them; it keeps queues of its own beside
// them, that of a completion queue as large as the ring. An estimate: entry
// sizes as in Linux drivers/infiniband/hw/cxgb4/t4.h (qp.c c4iw_create_qp,
// cq.c c4iw_create_cq), of which nothing was run.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSendEntry = 5 * 64;     // T4_SQ_NUM_BYTES
constexpr uint32_t kReceiveEntry = 2 * 64;  // T4_RQ_NUM_BYTES
constexpr uint32_t kLeastEntries = 8;
constexpr uint32_t kEntryMultiple = 16;
constexpr uint32_t kStatusEntries = 1;
constexpr uint32_t kArrayBytesPerSend = 80;     // t4_swsqe
constexpr uint32_t kArrayBytesPerReceive = 40;  // t4_swrqe
constexpr uint32_t kObjectStruct = 1024;        // in the process

// With one entry to tell full from empty.
Ring Queue(uint64_t wr, uint64_t stride) {
  const uint64_t entries =
      RoundUp(Max<uint64_t>(wr + 1, kLeastEntries), kEntryMultiple);
  Ring ring = RingOf(stride, entries + kStatusEntries);
  ring.slots = static_cast<uint32_t>(Min<uint64_t>(entries - 1, UINT32_MAX));
  return ring;
}

QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring = Queue(request.max_send_wr, kSendEntry);
  memory.send.node = RoundUpToPages(memory.send_ring.bytes, limits.page_size);
  memory.arrays.container =
      uint64_t{kArrayBytesPerSend} * memory.send_ring.slots;
  if (!request.uses_srq) {
    memory.receive_ring = Queue(request.max_recv_wr, kReceiveEntry);
    memory.receive.node =
        RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
    memory.arrays.container +=
        uint64_t{kArrayBytesPerReceive} * memory.receive_ring.slots;
  }
  memory.buffer_bytes = memory.send.node + memory.receive.node;
  memory.overhead.container = kObjectStruct;
  return memory;
}

// The ring has room for twice the entries, since a burst may precede a poll.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = Queue(uint64_t{2} * cqe, limits.cqe_size);
  memory.cap_cqe = cqe;
  memory.completion.node =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.arrays.container = memory.completion_ring.bytes;
  memory.buffer_bytes = memory.completion.node;
  memory.overhead.container = kObjectStruct;
  return memory;
}

QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  QueueMemory memory;
  memory.shared_receive_ring = Queue(request.max_wr, kReceiveEntry);
  memory.cap_srq_wr = request.max_wr;
  memory.cap_srq_sge = request.max_sge;
  memory.shared_receive.node =
      RoundUpToPages(memory.shared_receive_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.shared_receive.node;
  memory.arrays.container =
      uint64_t{kArrayBytesPerReceive} * memory.shared_receive_ring.slots;
  memory.overhead.container = kObjectStruct;
  return memory;
}

}  // namespace

// Limits: the kernel's iw_cxgb4 device.c c4iw_alloc and t4.h, with one status
// entry. How many objects there are the adapter's firmware tells.
constinit const ProviderRules kCxgb4Rules = {
    .traits = {.provider = Provider::kCxgb4,
               .name = "cxgb4",
               .kernel_names = {"iw_cxgb4", "cxgb4"},
               .devices = "Chelsio T4 to T6",
               .queue_pairs = Exactness::kEstimated,
               .completion_queues = Exactness::kEstimated,
               .queue_pair_types = Bit(QueuePairType::kRc),
               .charges_container = false,
               .charges_node = true,
               .pins_rings = false,
               .defaults = {.max_qp_wr = 8190,
                            .max_sge = 4,
                            .max_cqe = 65518,
                            .max_inline_data = 255,
                            .cqe_size = 64}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
