// SPDX-License-Identifier: Apache-2.0
//
// hns (HiSilicon HIP08 and later): send ring, area of extended SGEs and receive
// ring in one populated mapping of the process. Rules from rdma-core
// providers/hns: hns_roce_u_verbs.c (functions named below), hns_roce_u_buf.c.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSendWqe = 64;
constexpr uint32_t kSge = 16;
constexpr uint32_t kSgesInWqe = 2;           // of a connected type
constexpr uint32_t kLeastEntries = 64;       // HNS_ROCE_V2_MIN_WQE_NUM
constexpr uint32_t kLeastExtended = 256;     // SGEs: a page of them
constexpr uint32_t kArrayBytesPerEntry = 8;  // wrid
constexpr uint32_t kInlineListEntry = 16;
constexpr uint32_t kQueuePairStruct = 656;
constexpr uint32_t kCompletionQueueStruct = 384;
constexpr uint32_t kSharedReceiveQueueStruct = 256;  // about
constexpr uint32_t kDoorbell = 4;                    // of a shared page

uint64_t RoundedInline(const QueuePairRequest& request) {
  return request.max_inline_data == 0 ? 0
                                      : NextPowerOfTwo(request.max_inline_data);
}

// verify_qp_create_cap.
Refusal Check(const DeviceLimits& limits, const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request)) return refusal;
  if (const Refusal refusal =
          RefuseBelow(Limit::kLeastSendWr, request.max_send_wr, 1))
    return refusal;
  if (request.uses_srq || request.max_recv_wr == 0) return {};
  return RefuseBelow(Limit::kLeastRecvSge, request.max_recv_sge, 1);
}

// SGEs beside a send WQE, for its gather list or its inline data.
// set_ext_sge_param.
uint64_t ExtendedSges(const QueuePairRequest& request) {
  const uint64_t inlined = RoundedInline(request) / kSge;
  if (request.type == QueuePairType::kUd)
    return NextPowerOfTwo(
        Max<uint64_t>(Max<uint64_t>(request.max_send_sge, 1), inlined));
  const uint64_t gather =
      request.max_send_sge > kSgesInWqe ? request.max_send_sge - kSgesInWqe : 0;
  const uint64_t extended = Max(gather, inlined > kSgesInWqe ? inlined : 0);
  return extended == 0 ? 0 : NextPowerOfTwo(extended);
}

void SizeSendRing(const DeviceLimits& limits, const QueuePairRequest& request,
                  QueueMemory& memory) {
  const uint64_t count =
      NextPowerOfTwo(Max(request.max_send_wr, kLeastEntries));
  const uint64_t extended = ExtendedSges(request);
  memory.send_ring = RingOf(kSendWqe, count);
  memory.send.container =
      RoundUpToPages(memory.send_ring.bytes, limits.page_size);
  if (extended > 0)
    memory.send.container +=
        RoundUpToPages(Max<uint64_t>(extended * count, kLeastExtended) * kSge,
                       limits.page_size);
  memory.cap_send_wr = memory.send_ring.slots;
  memory.cap_inline_data = static_cast<uint32_t>(RoundedInline(request));
  memory.arrays.container = count * kArrayBytesPerEntry;
  memory.overhead.container = kQueuePairStruct + kDoorbell;
}

void SizeReceiveRing(const DeviceLimits& limits,
                     const QueuePairRequest& request, QueueMemory& memory) {
  const uint64_t count =
      NextPowerOfTwo(Max(request.max_recv_wr, kLeastEntries));
  const uint64_t sges = memory.cap_recv_sge;
  memory.receive_ring = RingOf(sges * kSge, count);
  memory.receive.container =
      RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
  memory.cap_recv_wr = memory.receive_ring.slots;
  memory.arrays.container += count * kArrayBytesPerEntry;
  if (limits.hns.receive_inline)  // alloc_recv_rinl_buf
    memory.arrays.container += count * kInlineListEntry * (1 + sges);
  memory.overhead.container += kDoorbell;
}

// hns_roce_set_qp_params, calc_qp_buff_size, qp_alloc_wqe.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = Check(limits, request)) return Refused(refusal);
  QueueMemory memory;
  memory.cap_send_sge = request.max_send_sge;
  SizeSendRing(limits, request, memory);
  if (!request.uses_srq && request.type != QueuePairType::kXrcSend &&
      request.max_recv_sge > 0) {
    memory.cap_recv_sge =
        static_cast<uint32_t>(NextPowerOfTwo(request.max_recv_sge));
    if (request.max_recv_wr > 0) SizeReceiveRing(limits, request, memory);
  }
  memory.buffer_bytes = memory.send.container + memory.receive.container;
  if (request.uses_srq) memory.exactness = Exactness::kEstimated;
  return memory;
}

// hns_roce_u_create_cq.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring =
      RingOf(limits.cqe_size, NextPowerOfTwo(Max(cqe, kLeastEntries)));
  memory.cap_cqe = memory.completion_ring.slots;
  memory.completion.container =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.completion.container;
  memory.overhead.container = kCompletionQueueStruct + kDoorbell;
  return memory;
}

// hns_roce_u_create_srq: one SGE and one entry more than asked, and a queue of
// indices of 4 bytes.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  const uint64_t count = NextPowerOfTwo(uint64_t{request.max_wr} + 1);
  const uint64_t sges = NextPowerOfTwo(uint64_t{request.max_sge} + 1);
  QueueMemory memory;
  memory.shared_receive_ring = RingOf(sges * kSge, count);
  memory.shared_receive_ring.slots = memory.cap_srq_wr =
      static_cast<uint32_t>(count - 1);
  memory.cap_srq_sge = request.max_sge;
  memory.shared_receive.container =
      RoundUpToPages(memory.shared_receive_ring.bytes, limits.page_size) +
      RoundUpToPages(count * 4, limits.page_size);
  memory.buffer_bytes = memory.shared_receive.container;
  memory.arrays.container = count * kArrayBytesPerEntry;
  memory.overhead.container = kSharedReceiveQueueStruct + kDoorbell;
  return memory;
}

}  // namespace

// Limits: HIP09; counts: the driver's bounds in hns_roce_hw_v2.h.
constinit const ProviderRules kHnsRules = {
    .traits = {.provider = Provider::kHns,
               .name = "hns",
               .kernel_names = {"hns_roce_hw_v2", "hns-roce", "hns3"},
               .devices = "HiSilicon HIP08, HIP09",
               .queue_pair_types = Bit(QueuePairType::kRc) |
                                   Bit(QueuePairType::kUd) |
                                   Bit(QueuePairType::kXrcSend),
               .defaults = {.max_qp_wr = 32768,
                            .max_sge = 64,
                            .max_cqe = 4194304,
                            .max_inline_data = 1024,
                            .cqe_size = 64},
               .counts = {.max_qp = 1 << 20,
                          .max_cq = 1 << 20,
                          .max_mr = 1 << 20,
                          .max_srq = 1 << 20}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
