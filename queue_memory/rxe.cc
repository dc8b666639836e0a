// SPDX-License-Identifier: Apache-2.0
//
// rxe (soft-RoCE): the kernel allocates the rings with vmalloc_user, which no
// cgroup is charged for, and the process maps them. Rules from Linux
// drivers/infiniband/sw/rxe: rxe_queue.c rxe_queue_init, rxe_qp.c and rxe_cq.c
// (functions named below), rxe_param.h; mm/vmalloc.c __vmalloc_area_node.
#include "queue_memory/arithmetic.h"
#include "queue_memory/providers.h"

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
constexpr uint32_t kPagePointer = 8;
constexpr uint32_t kQueuePairStruct = 464;  // in the process
constexpr uint32_t kCompletionQueueStruct = 344;

// rxe_param.h of current kernels, where the device does not tell.
constexpr uint32_t kDefaultMaxQpWr = 1u << 20;
constexpr uint32_t kDefaultMaxSge = 32;
constexpr uint32_t kDefaultMaxInlineData = 512;
constexpr uint32_t kDefaultMaxCqe = 32767;

// rxe_queue_init. One slot stays empty to tell a full ring from an empty one,
// so an exact power of two doubles the ring.
Ring RingOf(uint64_t entries, uint64_t entry_bytes) {
  const uint64_t stride =
      NextPowerOfTwo(Max<uint64_t>(entry_bytes, kLeastEntry));
  const uint64_t slots = NextPowerOfTwo(entries + 1);
  return {.stride = static_cast<uint32_t>(stride),
          .slots = static_cast<uint32_t>(slots - 1),
          .bytes = slots * stride};
}

uint64_t MappedBytes(const Ring& ring, uint32_t page_size) {
  return RoundUp(kQueueHeader + ring.bytes, page_size);
}

// __vmalloc_area_node: the array of an area's pages is a vmalloc area itself
// when it does not fit one page, and then has an array of its own.
uint64_t PageArrayBytes(uint64_t area_bytes, uint32_t page_size) {
  uint64_t sum = 0;
  uint64_t array = area_bytes / page_size * kPagePointer;
  while (array > page_size) {
    const uint64_t area = RoundUp(array, page_size);
    sum += area;
    array = area / page_size * kPagePointer;
  }
  return sum;
}

// rxe_qp_chk_init, rxe_qp_chk_cap. With an SRQ the receive side is not looked
// at.
Refusal Check(const DeviceLimits& limits, const QueuePairRequest& request) {
  if (request.type != QueuePairType::kRc &&
      request.type != QueuePairType::kUc && request.type != QueuePairType::kUd)
    return {Limit::kQueuePairType, static_cast<uint64_t>(request.type), 0};
  const uint32_t max_qp_wr = LimitOr(limits.max_qp_wr, kDefaultMaxQpWr);
  const uint32_t max_sge = LimitOr(limits.max_sge, kDefaultMaxSge, kMostSge);
  const uint32_t max_inline_data =
      LimitOr(limits.max_inline_data, kDefaultMaxInlineData, kMostEntryBytes);
  if (request.max_send_wr > max_qp_wr)
    return {Limit::kMaxSendWr, request.max_send_wr, max_qp_wr};
  if (request.max_send_sge > max_sge)
    return {Limit::kMaxSendSge, request.max_send_sge, max_sge};
  if (!request.uses_srq && request.max_recv_wr > max_qp_wr)
    return {Limit::kMaxRecvWr, request.max_recv_wr, max_qp_wr};
  if (!request.uses_srq && request.max_recv_sge > max_sge)
    return {Limit::kMaxRecvSge, request.max_recv_sge, max_sge};
  return RefuseAbove(Limit::kMaxInlineData, request.max_inline_data,
                     max_inline_data);
}

}  // namespace

// rxe_qp_init_req (rxe_init_sq), rxe_qp_init_resp (rxe_init_rq). Without an SRQ
// there is a receive ring even for max_recv_wr 0.
QueueMemory RxeQueuePair(const DeviceLimits& limits,
                         const QueuePairRequest& request) {
  if (const Refusal refusal = Check(limits, request)) return Refused(refusal);
  const uint32_t page_size = LimitOr(limits.page_size, kDefaultPageSize);

  QueueMemory memory;
  const uint32_t payload =
      Max(kSge * request.max_send_sge, request.max_inline_data);
  memory.send_ring = RingOf(request.max_send_wr, kSendWqe + payload);
  memory.send.node = MappedBytes(memory.send_ring, page_size);
  memory.overhead.node = PageArrayBytes(memory.send.node, page_size);
  memory.cap_send_wr = limits.writes_back_real_slots ? memory.send_ring.slots
                                                     : request.max_send_wr;
  memory.cap_send_sge = payload / kSge;
  memory.cap_inline_data = payload;

  memory.cap_recv_wr = request.max_recv_wr;
  memory.cap_recv_sge = request.max_recv_sge;
  if (!request.uses_srq) {
    memory.receive_ring =
        RingOf(request.max_recv_wr, kReceiveWqe + kSge * request.max_recv_sge);
    memory.receive.node = MappedBytes(memory.receive_ring, page_size);
    memory.overhead.node += PageArrayBytes(memory.receive.node, page_size);
    if (limits.writes_back_real_slots)
      memory.cap_recv_wr = memory.receive_ring.slots;
  }
  memory.overhead.container = kQueuePairStruct;
  memory.buffer_bytes = memory.send.node + memory.receive.node;
  return memory;
}

// rxe_cq_chk_attr, rxe_cq_from_init.
QueueMemory RxeCompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  const uint32_t max_cqe = LimitOr(limits.max_cqe, kDefaultMaxCqe);
  if (cqe == 0 || cqe > max_cqe) return Refused({Limit::kMaxCqe, cqe, max_cqe});
  const uint32_t page_size = LimitOr(limits.page_size, kDefaultPageSize);

  QueueMemory memory;
  memory.completion_ring = RingOf(cqe, LimitOr(limits.cqe_size, kCqe));
  memory.completion.node = MappedBytes(memory.completion_ring, page_size);
  memory.buffer_bytes = memory.completion.node;
  memory.overhead.node = PageArrayBytes(memory.completion.node, page_size);
  memory.overhead.container = kCompletionQueueStruct;
  memory.cap_cqe = memory.completion_ring.slots;
  return memory;
}

}  // namespace purser::queue_memory
