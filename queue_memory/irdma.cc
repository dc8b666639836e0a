// SPDX-License-Identifier: Apache-2.0
//
// irdma (Intel X722, E810, E830): one buffer of the process for both rings and
// a shadow area. Rules from rdma-core providers/irdma: uk.c and uverbs.c
// (functions named below). Rings are counted in quanta of 32 bytes.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kQuantum = 32;
constexpr uint32_t kReservedSendQuanta = 258;  // IRDMA_SQ_RSVD
constexpr uint32_t kReservedReceiveQuanta = 1;
constexpr uint32_t kLeastEntries = 8;  // min_hw_wq_size
constexpr uint32_t kShadowArea = 64;   // IRDMA_DB_SHADOW_AREA_SIZE
constexpr uint32_t kArrayBytesPerSendQuantum = 16;
constexpr uint32_t kArrayBytesPerReceiveQuantum = 8;
constexpr uint32_t kQueuePairStruct = 496;
constexpr uint32_t kCompletionQueueStruct = 576;
constexpr uint32_t kSharedReceiveQueueStruct = 512;  // about

// log2 of the quanta of an entry. irdma_get_wqe_shift.
uint32_t EntryShift(uint32_t generation, uint64_t sge, uint32_t inline_data) {
  if (generation == 1) {
    if (sge <= 1 && inline_data <= 16) return 0;
    return sge < 4 && inline_data <= 48 ? 1 : 2;
  }
  if (sge <= 1 && inline_data <= 8) return 0;
  if (sge < 4 && inline_data <= 39) return 1;
  return sge < 8 && inline_data <= 101 ? 2 : 3;
}

// irdma_get_sqdepth, irdma_get_rqdepth. 0 and a refusal where the device has no
// ring so large.
uint64_t Quanta(const DeviceLimits& limits, uint32_t wr, uint32_t shift,
                uint32_t reserved, Refusal& refusal) {
  const uint64_t quanta =
      Max<uint64_t>(NextPowerOfTwo((uint64_t{wr} << shift) + reserved),
                    uint64_t{kLeastEntries} << shift);
  if (quanta <= limits.irdma.max_quanta) return quanta;
  refusal = {reserved == kReservedSendQuanta ? Limit::kSendRingSize
                                             : Limit::kReceiveRingSize,
             quanta, limits.irdma.max_quanta};
  return 0;
}

Ring QuantaRing(uint64_t quanta, uint32_t shift, uint32_t reserved) {
  return {.stride = kQuantum << shift,
          .slots = static_cast<uint32_t>((quanta - reserved) >> shift),
          .bytes = quanta * kQuantum};
}

// irdma_ucreate_qp, irdma_uk_calc_depth_shift_sq and _rq, irdma_vmapped_qp.
// Beside an SRQ there is a receive ring for one entry.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);
  const uint32_t generation = limits.irdma.generation;
  const uint32_t send_shift = EntryShift(
      generation, uint64_t{request.max_send_sge} + (generation == 1 ? 0 : 1),
      request.max_inline_data);
  const uint32_t recv_wr = request.uses_srq ? 1 : request.max_recv_wr;
  const uint32_t receive_shift =
      request.uses_srq ? 0 : EntryShift(generation, request.max_recv_sge, 0);
  Refusal refusal;
  const uint64_t send = Quanta(limits, request.max_send_wr, send_shift,
                               kReservedSendQuanta, refusal);
  if (refusal) return Refused(refusal);
  const uint64_t receive =
      Quanta(limits, recv_wr, receive_shift, kReservedReceiveQuanta, refusal);
  if (refusal) return Refused(refusal);

  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring = QuantaRing(send, send_shift, kReservedSendQuanta);
  memory.cap_send_wr = memory.send_ring.slots;
  memory.receive_ring =
      QuantaRing(receive, receive_shift, kReservedReceiveQuanta);
  if (!request.uses_srq) memory.cap_recv_wr = memory.receive_ring.slots;
  memory.send.container =
      RoundUpToPages(memory.send_ring.bytes, limits.page_size);
  memory.receive.container =
      RoundUpToPages(memory.receive_ring.bytes, limits.page_size);
  memory.buffer_bytes =
      memory.send.container + memory.receive.container + kShadowArea;
  memory.arrays.container =
      send * kArrayBytesPerSendQuantum + receive * kArrayBytesPerReceiveQuantum;
  memory.overhead.container = kShadowArea + kQueuePairStruct;
  if (generation == 1) memory.exactness = Exactness::kEstimated;
  return memory;
}

// ucreate_cq, get_cq_size. The second generation pairs its 32-byte entries.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  const bool paired = limits.irdma.generation != 1 && limits.cqe_size == 32;
  const uint32_t per_completion = paired ? 2 : 1;
  const uint64_t entries =
      Max<uint64_t>(RoundUp((uint64_t{cqe} + 1) * per_completion, 2), 4);
  QueueMemory memory;
  memory.completion_ring = RingOf(limits.cqe_size, entries);
  memory.completion_ring.slots =
      static_cast<uint32_t>(entries / per_completion - 1);
  memory.cap_cqe = cqe;
  memory.completion.container =
      RoundUpToPages(memory.completion_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.completion.container + kShadowArea;
  memory.overhead.container = kShadowArea + kCompletionQueueStruct;
  if (limits.irdma.generation == 1) memory.exactness = Exactness::kEstimated;
  return memory;
}

// As a receive ring.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  const uint32_t shift =
      EntryShift(limits.irdma.generation, request.max_sge, 0);
  Refusal refusal;
  const uint64_t quanta =
      Quanta(limits, request.max_wr, shift, kReservedReceiveQuanta, refusal);
  if (refusal) return Refused(refusal);
  QueueMemory memory;
  memory.shared_receive_ring =
      QuantaRing(quanta, shift, kReservedReceiveQuanta);
  memory.cap_srq_wr = memory.shared_receive_ring.slots;
  memory.cap_srq_sge = request.max_sge;
  memory.shared_receive.container =
      RoundUpToPages(memory.shared_receive_ring.bytes, limits.page_size);
  memory.buffer_bytes = memory.shared_receive.container + kShadowArea;
  memory.arrays.container = quanta * kArrayBytesPerReceiveQuantum;
  memory.overhead.container = kShadowArea + kSharedReceiveQueueStruct;
  return memory;
}

}  // namespace

// Limits: E810 (generation 2), with as many objects as ibv_devinfo shows: more
// or fewer by the driver's resource profile.
constinit const ProviderRules kIrdmaRules = {
    .traits = {.provider = Provider::kIrdma,
               .name = "irdma",
               .kernel_names = {"irdma", "ice", "i40e", "idpf"},
               .devices = "Intel X722, E810, E830",
               .queue_pair_types =
                   Bit(QueuePairType::kRc) | Bit(QueuePairType::kUd),
               .defaults = {.max_sge = 13,
                            .max_cqe = 1048575,
                            .max_inline_data = 101,
                            .cqe_size = 32,
                            .irdma = {.generation = 2, .max_quanta = 32768}},
               .counts = {.max_qp = 4092, .max_cq = 8189, .max_mr = 4194301}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
