// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/fit.h"

#include "queue_memory/arithmetic.h"

namespace purser::queue_memory {
namespace {

uint64_t Completions(const QueuePairRequest& request, const QueueMemory& memory,
                     CompletionQueueSize size) {
  const uint64_t slots =
      uint64_t{memory.send_ring.slots} + memory.receive_ring.slots;
  if (size == CompletionQueueSize::kSlots) return Max<uint64_t>(slots, 1);
  const uint64_t asked = uint64_t{request.max_send_wr} +
                         (request.uses_srq ? 0 : request.max_recv_wr);
  return Max<uint64_t>(Max(slots, WithHeadroom(asked)), 1);
}

}  // namespace

QueuePairWithCompletionQueue QueuePairWithCompletionQueueMemory(
    Provider provider, const DeviceLimits& limits,
    const QueuePairRequest& request, CompletionQueueSize size) {
  const QueueMemory queue_pair = QueuePairMemory(provider, limits, request);
  if (queue_pair.refusal) return {.memory = queue_pair};
  auto cqe = static_cast<uint32_t>(
      Min<uint64_t>(Completions(request, queue_pair, size), UINT32_MAX));
  QueueMemory completion_queue = CompletionQueueMemory(provider, limits, cqe);
  if (completion_queue.refusal.limit == Limit::kMaxCqe) {
    cqe = static_cast<uint32_t>(completion_queue.refusal.allowed);
    completion_queue = CompletionQueueMemory(provider, limits, cqe);
  }
  const QueueMemory sum = Sum(queue_pair, completion_queue);
  return {.memory = sum, .cqe = sum.refusal ? 0 : cqe};
}

uint32_t LargestSendWr(Provider provider, const DeviceLimits& limits,
                       const QueuePairRequest& request,
                       const Headroom& headroom) {
  QueuePairRequest candidate = request;
  return LargestThatFits(UINT32_MAX, [&](uint32_t max_send_wr) {
    candidate.max_send_wr = max_send_wr;
    const QueueMemory memory =
        QueuePairWithCompletionQueueMemory(provider, limits, candidate).memory;
    return !memory.refusal && Fits(memory.total(), headroom);
  });
}

}  // namespace purser::queue_memory
