// SPDX-License-Identifier: Apache-2.0
//
// Refusals that providers have in common. Internal to queue_memory/.
#pragma once

#include "queue_memory/arithmetic.h"

namespace purser::queue_memory {

// Each figure by itself, send side first; with an SRQ the receive side is not
// looked at. What drivers do in their check of ibv_qp_cap.
constexpr Refusal CheckEach(const DeviceLimits& limits,
                            const QueuePairRequest& request) {
  if (request.max_send_wr > limits.max_qp_wr)
    return {Limit::kMaxSendWr, request.max_send_wr, limits.max_qp_wr};
  if (request.max_send_sge > limits.max_sge)
    return {Limit::kMaxSendSge, request.max_send_sge, limits.max_sge};
  if (!request.uses_srq && request.max_recv_wr > limits.max_recv_wr)
    return {Limit::kMaxRecvWr, request.max_recv_wr, limits.max_recv_wr};
  if (!request.uses_srq && request.max_recv_sge > limits.max_recv_sge)
    return {Limit::kMaxRecvSge, request.max_recv_sge, limits.max_recv_sge};
  return RefuseAbove(Limit::kMaxInlineData, request.max_inline_data,
                     limits.max_inline_data);
}

// `least` at least 1.
constexpr Refusal RefuseBelow(Limit limit, uint64_t asked, uint64_t least) {
  return asked < least ? Refusal{limit, asked, least} : Refusal{};
}

// Most providers write back what was asked.
constexpr void WriteBackAsAsked(const QueuePairRequest& request,
                                QueueMemory& memory) {
  memory.cap_send_wr = request.max_send_wr;
  memory.cap_send_sge = request.max_send_sge;
  memory.cap_inline_data = request.max_inline_data;
  memory.cap_recv_wr = request.max_recv_wr;
  memory.cap_recv_sge = request.max_recv_sge;
}

// An entry of `stride` bytes each.
constexpr Ring RingOf(uint64_t stride, uint64_t slots) {
  return {.stride = static_cast<uint32_t>(stride),
          .slots = static_cast<uint32_t>(Min<uint64_t>(slots, UINT32_MAX)),
          .bytes = stride * slots};
}

// A power of two of entries for `wr` of them, one more to tell full from empty.
constexpr Ring RingWithSpare(uint64_t stride, uint64_t wr) {
  const uint64_t entries = NextPowerOfTwo(wr + 1);
  Ring ring = RingOf(stride, entries);
  ring.slots = static_cast<uint32_t>(entries - 1);
  return ring;
}

}  // namespace purser::queue_memory
