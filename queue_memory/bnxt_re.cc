// SPDX-License-Identifier: Apache-2.0
//
// bnxt_re (Broadcom NetXtreme-E): rings, the arrays beside them and the queue
// pair's struct in one anonymous mapping. Rules from rdma-core
// providers/bnxt_re: verbs.c (functions named below), memory.c
// bnxt_re_alloc_mem.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSlot = 16;
constexpr uint32_t kWqeHeader = 32;
constexpr uint32_t kStaticWqe = 128;  // 6 SGEs
constexpr uint32_t kMostVariableWqe = 32 + 13 * kSlot;
// BNXT_RE_FULL_FLAG_DELTA, and one entry to tell full from empty.
constexpr uint32_t kSpareSends = 128 + 1;
constexpr uint32_t kSpareReceives = 1;
constexpr uint32_t kVariableSlotMultiple = 256;
constexpr uint32_t kPsnEntry = 16;
constexpr uint32_t kMsnEntry = 8;
constexpr uint32_t kShadowEntry = 40;  // bnxt_re_wrid
// In the mapping: bnxt_re_qp, two queues with their locks.
constexpr uint32_t kQueuePairStructs = 624 + 2 * (32 + 96);
constexpr uint32_t kQueuePairHeap = 32;
constexpr uint32_t kCompletionQueueStructs = 264 + 96 + 32;
constexpr uint32_t kSharedReceiveQueueStruct = 512;  // about

uint64_t Entries(const DeviceLimits& limits, uint64_t entries) {
  return limits.bnxt_re.power_of_two_rings ? NextPowerOfTwo(entries) : entries;
}

// bnxt_re_get_sq_slots, bnxt_re_get_rq_slots: what the request needs.
uint64_t SendWqe(const DeviceLimits& limits, const QueuePairRequest& request) {
  const uint32_t multiple = limits.bnxt_re.variable_wqe ? kSlot : 32;
  return kWqeHeader + Max(uint64_t{kSlot} * request.max_send_sge,
                          RoundUp(request.max_inline_data, multiple));
}

uint64_t ReceiveWqe(uint32_t sge) { return kWqeHeader + uint64_t{kSlot} * sge; }

Refusal Check(const DeviceLimits& limits, const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request)) return refusal;
  const uint32_t most =
      limits.bnxt_re.variable_wqe ? kMostVariableWqe : kStaticWqe;
  if (const Refusal refusal =
          RefuseAbove(Limit::kSendWqeSize, SendWqe(limits, request), most))
    return refusal;
  return RefuseAbove(Limit::kReceiveWqeSize,
                     request.uses_srq ? 0 : ReceiveWqe(request.max_recv_sge),
                     most);
}

// bnxt_re_get_sqmem_size: the ring and the search area of packet or message
// sequence numbers, which UD has as well.
void SizeSendRing(const DeviceLimits& limits, const QueuePairRequest& request,
                  QueueMemory& memory) {
  const uint64_t entries =
      Entries(limits, uint64_t{request.max_send_wr} + kSpareSends);
  const bool variable = limits.bnxt_re.variable_wqe;
  const uint64_t stride = variable ? SendWqe(limits, request) : kStaticWqe;
  uint64_t shadow = entries;
  uint64_t bytes = entries * stride;
  if (variable) {
    shadow = RoundUp(bytes / kSlot, kVariableSlotMultiple);
    bytes = shadow * kSlot;
  }
  const uint64_t search = limits.bnxt_re.msn_table
                              ? kMsnEntry * NextPowerOfTwo(shadow)
                              : kPsnEntry * entries;
  memory.send_ring = {.stride = static_cast<uint32_t>(stride),
                      .slots = static_cast<uint32_t>(
                          Min<uint64_t>(entries - kSpareSends, UINT32_MAX)),
                      .bytes = bytes};
  memory.send.container = RoundUpToPages(bytes + search, limits.page_size);
  memory.arrays.container = kShadowEntry * shadow;
}

// bnxt_re_get_rqmem_size.
void SizeReceiveRing(const DeviceLimits& limits,
                     const QueuePairRequest& request, QueueMemory& memory) {
  const uint64_t entries =
      Entries(limits, uint64_t{request.max_recv_wr} + kSpareReceives);
  const uint64_t stride = limits.bnxt_re.variable_wqe
                              ? ReceiveWqe(request.max_recv_sge)
                              : kStaticWqe;
  memory.receive_ring = {.stride = static_cast<uint32_t>(stride),
                         .slots = static_cast<uint32_t>(entries - 1),
                         .bytes = entries * stride};
  memory.receive.container =
      RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
  memory.arrays.container += kShadowEntry * entries;
}

// bnxt_re_get_qpmem_size, bnxt_re_alloc_qpslab. The kernel answers with the
// inline data that fits an entry.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = Check(limits, request)) return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  SizeSendRing(limits, request, memory);
  if (request.max_inline_data > 0)
    memory.cap_inline_data = memory.send_ring.stride - kWqeHeader;
  if (!request.uses_srq) SizeReceiveRing(limits, request, memory);
  const uint64_t parts = memory.send.container + memory.receive.container +
                         memory.arrays.container;
  memory.buffer_bytes =
      RoundUpToPages(parts + kQueuePairStructs, limits.page_size);
  memory.overhead.container = memory.buffer_bytes - parts + kQueuePairHeap;
  // Combinations of which no creation was recorded.
  const DeviceLimits::BnxtRe& mode = limits.bnxt_re;
  if (request.uses_srq || mode.variable_wqe != mode.msn_table ||
      (mode.variable_wqe && mode.power_of_two_rings))
    memory.exactness = Exactness::kEstimated;
  return memory;
}

// bnxt_re_create_cq, bnxt_re_alloc_cqslab: as long as the device has twice the
// entries, twice as many as asked are made.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  const uint64_t asked =
      uint64_t{2} * cqe < limits.max_cqe ? uint64_t{2} * cqe : uint64_t{cqe};
  const uint64_t entries =
      Min<uint64_t>(Entries(limits, asked + 1), uint64_t{limits.max_cqe} + 1);
  QueueMemory memory;
  memory.completion_ring = RingOf(limits.cqe_size, entries);
  memory.completion_ring.slots = static_cast<uint32_t>(entries - 1);
  memory.cap_cqe = static_cast<uint32_t>(Min<uint64_t>(asked + 1, UINT32_MAX));
  memory.completion.container =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.completion.container;
  memory.overhead.container = kCompletionQueueStructs;
  return memory;
}

// As a receive ring.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  const uint64_t wqe = ReceiveWqe(request.max_sge);
  const uint32_t most =
      limits.bnxt_re.variable_wqe ? kMostVariableWqe : kStaticWqe;
  if (wqe > most) return Refused({Limit::kReceiveWqeSize, wqe, most});
  const uint64_t entries =
      Entries(limits, uint64_t{request.max_wr} + kSpareReceives);
  QueueMemory memory;
  memory.shared_receive_ring = {.stride = limits.bnxt_re.variable_wqe
                                              ? static_cast<uint32_t>(wqe)
                                              : kStaticWqe,
                                .slots = static_cast<uint32_t>(entries - 1)};
  memory.shared_receive_ring.bytes =
      entries * memory.shared_receive_ring.stride;
  memory.cap_srq_wr = request.max_wr;
  memory.cap_srq_sge = request.max_sge;
  memory.shared_receive.container =
      RoundUpToPages(memory.shared_receive_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.shared_receive.container;
  memory.arrays.container = kShadowEntry * entries;
  memory.overhead.container = kSharedReceiveQueueStruct;
  return memory;
}

}  // namespace

// Limits: BCM575xx with what a current kernel answers; counts: the kernel's
// bounds in bnxt_re.h.
constinit const ProviderRules kBnxtReRules = {
    .traits =
        {.provider = Provider::kBnxtRe,
         .name = "bnxt_re",
         .kernel_names = {"bnxt_re", "bnxt_en"},
         .devices = "Broadcom NetXtreme-E",
         .queue_pair_types = Bit(QueuePairType::kRc) | Bit(QueuePairType::kUd),
         .defaults = {.max_qp_wr = 65407, .max_cqe = 1048575, .cqe_size = 32},
         .counts = {.max_qp = 65536,
                    .max_cq = 65536,
                    .max_mr = 65536,
                    .max_srq = 65536}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
