// SPDX-License-Identifier: Apache-2.0
//
// rxe (soft-RoCE): the kernel allocates the rings with vmalloc_user, which no
// cgroup is charged for, and the process maps them. Rules from Linux
// drivers/infiniband/sw/rxe: rxe_queue.c rxe_queue_init, rxe_qp.c, rxe_cq.c
// (functions named below), rxe_param.h.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"
#include "queue_memory/vmalloc.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kQueueHeader = 384;  // rxe_queue_buf
constexpr uint32_t kLeastEntry = 64;    // a cache line
constexpr uint32_t kSendWqe = 208;      // rxe_send_wqe
constexpr uint32_t kReceiveWqe = 40;    // rxe_recv_wqe
constexpr uint32_t kSge = 16;           // ib_sge
// rxe_cqe holds an ib_wc: 72 bytes since Linux 5.13 made its port_num 32 bits
// wide, so 128 with the rounding up. It was 64 before.
constexpr uint32_t kCqe = 72;
constexpr uint32_t kLeastSrqSge = 1;        // RXE_MIN_SRQ_SGE
constexpr uint32_t kQueuePairStruct = 464;  // in the process
constexpr uint32_t kCompletionQueueStruct = 344;
constexpr uint32_t kSharedReceiveQueueStruct = 512;  // about

// rxe_queue_init. One slot stays empty to tell a full ring from an empty one,
// so an exact power of two doubles the ring.
Ring Queue(uint64_t entries, uint64_t entry_bytes) {
  const uint64_t stride =
      NextPowerOfTwo(Max<uint64_t>(entry_bytes, kLeastEntry));
  const uint64_t slots = NextPowerOfTwo(entries + 1);
  return {.stride = static_cast<uint32_t>(stride),
          .slots = static_cast<uint32_t>(slots - 1),
          .bytes = slots * stride};
}

uint64_t MappedBytes(const Ring& ring, uint32_t page_size) {
  return RoundUpToPages(kQueueHeader + ring.bytes, page_size);
}

// rxe_qp_init_req (rxe_init_sq), rxe_qp_init_resp (rxe_init_rq),
// rxe_qp_chk_init, rxe_qp_chk_cap. Without an SRQ there is a receive ring even
// for max_recv_wr 0.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);

  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  const uint32_t payload =
      Max(kSge * request.max_send_sge, request.max_inline_data);
  memory.send_ring = Queue(request.max_send_wr, kSendWqe + payload);
  memory.send.node = MappedBytes(memory.send_ring, limits.page_size);
  memory.overhead.node = PageArrayBytes(memory.send.node, limits.page_size);
  if (limits.writes_back_real_slots)
    memory.cap_send_wr = memory.send_ring.slots;
  memory.cap_send_sge = payload / kSge;
  memory.cap_inline_data = payload;

  if (!request.uses_srq) {
    memory.receive_ring =
        Queue(request.max_recv_wr, kReceiveWqe + kSge * request.max_recv_sge);
    memory.receive.node = MappedBytes(memory.receive_ring, limits.page_size);
    memory.overhead.node +=
        PageArrayBytes(memory.receive.node, limits.page_size);
    if (limits.writes_back_real_slots)
      memory.cap_recv_wr = memory.receive_ring.slots;
  }
  memory.overhead.container = kQueuePairStruct;
  memory.buffer_bytes = memory.send.node + memory.receive.node;
  return memory;
}

// rxe_cq_chk_attr, rxe_cq_from_init.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = Queue(cqe, limits.cqe_size);
  memory.completion.node =
      MappedBytes(memory.completion_ring, limits.page_size);
  memory.buffer_bytes = memory.completion.node;
  memory.overhead.node =
      PageArrayBytes(memory.completion.node, limits.page_size);
  memory.overhead.container = kCompletionQueueStruct;
  memory.cap_cqe = memory.completion_ring.slots;
  return memory;
}

// rxe_srq.c rxe_srq_chk_init, rxe_srq_from_init: as a receive ring.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  QueueMemory memory;
  const uint32_t max_sge = Max(request.max_sge, kLeastSrqSge);
  memory.shared_receive_ring =
      Queue(request.max_wr, kReceiveWqe + uint64_t{kSge} * max_sge);
  memory.shared_receive.node =
      MappedBytes(memory.shared_receive_ring, limits.page_size);
  memory.buffer_bytes = memory.shared_receive.node;
  memory.overhead.node =
      PageArrayBytes(memory.shared_receive.node, limits.page_size);
  memory.overhead.container = kSharedReceiveQueueStruct;
  memory.cap_srq_wr = limits.writes_back_real_slots
                          ? memory.shared_receive_ring.slots
                          : request.max_wr;
  memory.cap_srq_sge = max_sge;
  return memory;
}

}  // namespace

// Limits: rxe_param.h of current kernels.
constinit const ProviderRules kRxeRules = {
    .traits = {.provider = Provider::kRxe,
               .name = "rxe",
               .kernel_names = {"rdma_rxe"},
               .devices = "soft-RoCE",
               .shared_receive_queues = Exactness::kExact,
               .queue_pair_types = Bit(QueuePairType::kRc) |
                                   Bit(QueuePairType::kUc) |
                                   Bit(QueuePairType::kUd),
               .has_adapter = false,
               .charges_container = false,
               .charges_node = true,
               .pins_rings = false,
               .defaults = {.max_qp_wr = 1u << 20,
                            .max_sge = 32,
                            .max_cqe = 32767,
                            .max_srq_sge = 27,
                            .max_inline_data = 512,
                            .cqe_size = kCqe},
               .counts = {.max_qp = 1048560,
                          .max_cq = 1048576,
                          .max_mr = 524287,
                          .max_srq = 917503}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
