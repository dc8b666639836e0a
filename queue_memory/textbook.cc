// SPDX-License-Identifier: Apache-2.0
//
// The fallback for providers without a rule of their own: a textbook sum, times
// a safety factor, plus a floor. Derived from tests/testdata/golden, fourteen
// profiles of eleven providers: it covers the real total of 99.7 % of the queue
// pairs and of all completion queues there, and is 4.9 times that total in the
// median (docs/memory-model.md). Who pays is not known, so the node does: such
// a device needs a budget given explicitly or by the plugin.
#include "queue_memory/arithmetic.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSafetyFactor = 6;
constexpr uint32_t kFloor = 128 * 1024;  // bytes per queue pair
constexpr uint32_t kWqe = 64;
constexpr uint32_t kSge = 16;
constexpr uint32_t kCqe = 64;
constexpr uint32_t kCompletionSafetyFactor = 4;
constexpr uint32_t kCompletionFloor = 4096;

// Refuses only what the device itself refuses, where it tells.
Refusal Check(const DeviceLimits& limits, const QueuePairRequest& request) {
  const uint32_t max_qp_wr = LimitOr(limits.max_qp_wr, UINT32_MAX);
  const uint32_t max_sge = LimitOr(limits.max_sge, kMostSge, kMostSge);
  const uint32_t max_inline_data =
      LimitOr(limits.max_inline_data, kMostEntryBytes, kMostEntryBytes);
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

Ring RingOf(uint32_t wr, uint32_t payload) {
  const uint32_t stride = kSafetyFactor * (kWqe + payload);
  return {.stride = stride, .slots = wr, .bytes = uint64_t{wr} * stride};
}

}  // namespace

// Unlike TextbookBytes() it counts inline data, which most providers lay into
// the send ring.
QueueMemory TextbookQueuePair(const DeviceLimits& limits,
                              const QueuePairRequest& request) {
  if (const Refusal refusal = Check(limits, request))
    return Refused(refusal, Exactness::kFallback);
  QueueMemory memory;
  memory.exactness = Exactness::kFallback;
  memory.send_ring =
      RingOf(request.max_send_wr,
             Max(kSge * request.max_send_sge, request.max_inline_data));
  memory.send.node = memory.send_ring.bytes;
  if (!request.uses_srq) {
    memory.receive_ring =
        RingOf(request.max_recv_wr, kSge * request.max_recv_sge);
    memory.receive.node = memory.receive_ring.bytes;
  }
  memory.overhead.node = kFloor;
  memory.buffer_bytes =
      memory.send.node + memory.receive.node + memory.overhead.node;
  memory.cap_send_wr = request.max_send_wr;
  memory.cap_send_sge = request.max_send_sge;
  memory.cap_inline_data = request.max_inline_data;
  memory.cap_recv_wr = request.max_recv_wr;
  memory.cap_recv_sge = request.max_recv_sge;
  return memory;
}

QueueMemory TextbookCompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  const uint32_t max_cqe = LimitOr(limits.max_cqe, UINT32_MAX);
  if (cqe == 0 || cqe > max_cqe)
    return Refused({Limit::kMaxCqe, cqe, max_cqe}, Exactness::kFallback);
  QueueMemory memory;
  memory.exactness = Exactness::kFallback;
  const uint32_t stride = kCompletionSafetyFactor * kCqe;
  memory.completion_ring = {
      .stride = stride, .slots = cqe, .bytes = uint64_t{cqe} * stride};
  memory.completion.node = memory.completion_ring.bytes;
  memory.overhead.node = kCompletionFloor;
  memory.buffer_bytes = memory.completion.node + memory.overhead.node;
  memory.cap_cqe = cqe;
  return memory;
}

}  // namespace purser::queue_memory
