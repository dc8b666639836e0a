// SPDX-License-Identifier: Apache-2.0
//
// ocrdma (Emulex OneConnect): the rings are the kernel's, coherent with the
// device, and the process maps them. An estimate on the high side: the sizes
// of entries are the device's to say, and only who allocates is known (Linux
// drivers/infiniband/hw/ocrdma/ocrdma_hw.c ocrdma_build_q_conf; rdma-core
// providers/ocrdma/ocrdma_verbs.c ocrdma_create_qp).
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSendEntry = 256;
constexpr uint32_t kReceiveEntry = 128;
// A ring has at most 8 areas of 512 KiB, and one entry stays empty.
constexpr uint32_t kMostWr = (4u << 20) / kSendEntry - 1;
constexpr uint32_t kMostRecvWr = (4u << 20) / kReceiveEntry - 1;
constexpr uint32_t kArrayBytesPerSend = 16;    // wqe_wr_id_tbl
constexpr uint32_t kArrayBytesPerReceive = 8;  // rqe_wr_id_tbl
constexpr uint32_t kCompletionEntry = 16;      // ocrdma_cqe
constexpr uint32_t kObjectStruct = 1024;       // in the process

QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring = RingWithSpare(
      NextPowerOfTwo(Max(kSendEntry, 64 + request.max_inline_data)),
      request.max_send_wr);
  memory.send.node = RoundUpToPages(memory.send_ring.bytes, limits.page_size);
  memory.cap_send_wr = memory.send_ring.slots;
  memory.arrays.container =
      kArrayBytesPerSend * (uint64_t{memory.send_ring.slots} + 1);
  if (!request.uses_srq) {
    memory.receive_ring = RingWithSpare(kReceiveEntry, request.max_recv_wr);
    memory.receive.node =
        RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
    memory.cap_recv_wr = memory.receive_ring.slots;
    memory.arrays.container +=
        kArrayBytesPerReceive * (uint64_t{memory.receive_ring.slots} + 1);
  }
  memory.buffer_bytes = memory.send.node + memory.receive.node;
  memory.overhead.container = kObjectStruct;
  return memory;
}

// ocrdma_mbx_create_cq: as many entries as the device has at most, whatever was
// asked for. Where that is not told, the estimate is of what was.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = limits.max_cqe == UINT32_MAX
                               ? RingWithSpare(limits.cqe_size, cqe)
                               : RingOf(kCompletionEntry, limits.max_cqe);
  memory.cap_cqe = memory.completion_ring.slots;
  memory.completion.node =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.completion.node;
  memory.overhead.container = kObjectStruct;
  return memory;
}

QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  QueueMemory memory;
  memory.shared_receive_ring = RingWithSpare(kReceiveEntry, request.max_wr);
  memory.cap_srq_wr = memory.shared_receive_ring.slots;
  memory.cap_srq_sge = request.max_sge;
  memory.shared_receive.node =
      RoundUpToPages(memory.shared_receive_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.shared_receive.node;
  memory.arrays.container =
      kArrayBytesPerReceive * (uint64_t{memory.cap_srq_wr} + 1);
  memory.overhead.container = kObjectStruct;
  return memory;
}

}  // namespace

// Depths: ocrdma_get_attr and ocrdma_sli.h. SGEs, completion queues and how
// many objects there are the adapter's firmware tells.
constinit const ProviderRules kOcrdmaRules = {
    .traits = {.provider = Provider::kOcrdma,
               .name = "ocrdma",
               .kernel_names = {"ocrdma", "be2net"},
               .devices = "Emulex OneConnect",
               .queue_pairs = Exactness::kEstimated,
               .completion_queues = Exactness::kEstimated,
               .queue_pair_types = Bit(QueuePairType::kRc) |
                                   Bit(QueuePairType::kUc) |
                                   Bit(QueuePairType::kUd),
               .charges_container = false,
               .charges_node = true,
               .pins_rings = false,
               .defaults = {.max_qp_wr = kMostWr,
                            .max_recv_wr = kMostRecvWr,
                            .cqe_size = 64}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
