// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/queue_memory.h"

#include "queue_memory/arithmetic.h"
#include "queue_memory/context.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

Ring Sum(const Ring& a, const Ring& b) {
  const uint64_t slots = uint64_t{a.slots} + b.slots;
  return {.stride = Max(a.stride, b.stride),
          .slots = static_cast<uint32_t>(Min<uint64_t>(slots, UINT32_MAX)),
          .bytes = a.bytes + b.bytes};
}

uint64_t TextbookRing(uint32_t wr, uint32_t sge) {
  return SaturatingMultiply(wr, 64 + uint64_t{16} * sge);
}

QueueMemory ByRule(const ProviderRules& rules, const DeviceLimits& limits,
                   const QueuePairRequest& request) {
  if (!rules.traits.Has(request.type))
    return Refused(
        {Limit::kQueuePairType, static_cast<uint64_t>(request.type), 0});
  if (request.uses_srq && !rules.traits.has_shared_receive_queues)
    return Refused({Limit::kSharedReceiveQueue, 1, 0});
  return rules.queue_pair(limits, request);
}

QueueMemory ByRule(const ProviderRules& rules, const DeviceLimits& limits,
                   uint32_t cqe) {
  const uint32_t max_cqe = Min(limits.max_cqe, rules.most_cqe);
  if (cqe == 0 || cqe > max_cqe) return Refused({Limit::kMaxCqe, cqe, max_cqe});
  return rules.completion_queue(limits, cqe);
}

QueueMemory ByRule(const ProviderRules& rules, const DeviceLimits& limits,
                   const SharedReceiveQueueRequest& request) {
  if (!rules.traits.has_shared_receive_queues)
    return Refused({Limit::kSharedReceiveQueue, 1, 0});
  if (request.max_wr == 0) return Refused({Limit::kLeastSrqWr, 0, 1});
  if (request.max_wr > limits.max_srq_wr)
    return Refused({Limit::kMaxSrqWr, request.max_wr, limits.max_srq_wr});
  if (request.max_sge > limits.max_srq_sge)
    return Refused({Limit::kMaxSrqSge, request.max_sge, limits.max_srq_sge});
  return rules.shared_receive_queue(limits, request);
}

}  // namespace

QueueMemory QueuePairMemory(Provider provider, const DeviceLimits& limits,
                            const QueuePairRequest& request) {
  const ProviderRules& rules = RulesOf(provider);
  const DeviceLimits effective = WithDefaults(limits, rules.traits.defaults);
  QueueMemory memory = ByRule(rules, effective, request);
  memory.exactness = Max(memory.exactness, rules.traits.queue_pairs);
  AddContext(rules.traits, effective, Object::kQueuePair, memory);
  return memory;
}

QueueMemory CompletionQueueMemory(Provider provider, const DeviceLimits& limits,
                                  uint32_t cqe) {
  const ProviderRules& rules = RulesOf(provider);
  const DeviceLimits effective = WithDefaults(limits, rules.traits.defaults);
  QueueMemory memory = ByRule(rules, effective, cqe);
  memory.exactness = Max(memory.exactness, rules.traits.completion_queues);
  AddContext(rules.traits, effective, Object::kCompletionQueue, memory);
  return memory;
}

QueueMemory SharedReceiveQueueMemory(Provider provider,
                                     const DeviceLimits& limits,
                                     const SharedReceiveQueueRequest& request) {
  const ProviderRules& rules = RulesOf(provider);
  const DeviceLimits effective = WithDefaults(limits, rules.traits.defaults);
  QueueMemory memory = ByRule(rules, effective, request);
  memory.exactness = Max(memory.exactness, rules.traits.shared_receive_queues);
  AddContext(rules.traits, effective, Object::kSharedReceiveQueue, memory);
  return memory;
}

QueueMemory Sum(const QueueMemory& a, const QueueMemory& b) {
  const Exactness exactness = Max(a.exactness, b.exactness);
  QueueMemory sum;
  sum.exactness = exactness;
  sum.refusal = a.refusal ? a.refusal : b.refusal;
  if (sum.refusal) return sum;
  sum.send_ring = Sum(a.send_ring, b.send_ring);
  sum.receive_ring = Sum(a.receive_ring, b.receive_ring);
  sum.completion_ring = Sum(a.completion_ring, b.completion_ring);
  sum.shared_receive_ring = Sum(a.shared_receive_ring, b.shared_receive_ring);
  sum.send = a.send + b.send;
  sum.receive = a.receive + b.receive;
  sum.completion = a.completion + b.completion;
  sum.shared_receive = a.shared_receive + b.shared_receive;
  sum.arrays = a.arrays + b.arrays;
  sum.overhead = a.overhead + b.overhead;
  sum.context = a.context + b.context;
  sum.buffer_bytes = a.buffer_bytes + b.buffer_bytes;
  sum.cap_send_wr = Max(a.cap_send_wr, b.cap_send_wr);
  sum.cap_send_sge = Max(a.cap_send_sge, b.cap_send_sge);
  sum.cap_inline_data = Max(a.cap_inline_data, b.cap_inline_data);
  sum.cap_recv_wr = Max(a.cap_recv_wr, b.cap_recv_wr);
  sum.cap_recv_sge = Max(a.cap_recv_sge, b.cap_recv_sge);
  sum.cap_cqe = Max(a.cap_cqe, b.cap_cqe);
  sum.cap_srq_wr = Max(a.cap_srq_wr, b.cap_srq_wr);
  sum.cap_srq_sge = Max(a.cap_srq_sge, b.cap_srq_sge);
  return sum;
}

uint64_t TextbookBytes(const QueuePairRequest& request) {
  return SaturatingAdd(TextbookRing(request.max_send_wr, request.max_send_sge),
                       request.uses_srq ? 0
                                        : TextbookRing(request.max_recv_wr,
                                                       request.max_recv_sge));
}

}  // namespace purser::queue_memory
