// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/queue_memory.h"

#include "queue_memory/arithmetic.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

// The one dispatch: a provider is a row here and a file of its own.
struct Rules {
  Provider provider;
  const char* name;             // rdma-core's
  const char* kernel_names[2];  // of the driver and of its RDMA module
  QueueMemory (*queue_pair)(const DeviceLimits&, const QueuePairRequest&);
  QueueMemory (*completion_queue)(const DeviceLimits&, uint32_t cqe);
};

constexpr Rules kRules[] = {
    {Provider::kUnknown,
     "unknown",
     {},
     TextbookQueuePair,
     TextbookCompletionQueue},
    {Provider::kMlx5,
     "mlx5",
     {"mlx5_core", "mlx5_ib"},
     Mlx5QueuePair,
     Mlx5CompletionQueue},
    {Provider::kRxe, "rxe", {"rdma_rxe"}, RxeQueuePair, RxeCompletionQueue},
};

const Rules& RulesOf(Provider provider) {
  for (const Rules& rules : kRules)
    if (rules.provider == provider) return rules;
  return kRules[0];
}

bool Equal(const char* a, const char* b) {
  if (a == nullptr || b == nullptr) return false;
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

Ring Sum(const Ring& a, const Ring& b) {
  const uint64_t slots = uint64_t{a.slots} + b.slots;
  return {.stride = Max(a.stride, b.stride),
          .slots = static_cast<uint32_t>(Min<uint64_t>(slots, UINT32_MAX)),
          .bytes = a.bytes + b.bytes};
}

uint64_t TextbookRing(uint32_t wr, uint32_t sge) {
  return SaturatingMultiply(wr, 64 + uint64_t{16} * sge);
}

}  // namespace

const char* ProviderName(Provider provider) { return RulesOf(provider).name; }

Provider ProviderFromName(const char* name) {
  for (const Rules& rules : kRules)
    if (Equal(name, rules.name) || Equal(name, rules.kernel_names[0]) ||
        Equal(name, rules.kernel_names[1]))
      return rules.provider;
  return Provider::kUnknown;
}

const char* LimitName(Limit limit) {
  switch (limit) {
    case Limit::kNone:
      return "none";
    case Limit::kQueuePairType:
      return "queue pair type";
    case Limit::kMaxSendWr:
      return "max_send_wr";
    case Limit::kMaxRecvWr:
      return "max_recv_wr";
    case Limit::kMaxSendSge:
      return "max_send_sge";
    case Limit::kMaxRecvSge:
      return "max_recv_sge";
    case Limit::kMaxInlineData:
      return "max_inline_data";
    case Limit::kSendWqeSize:
      return "send WQE size";
    case Limit::kReceiveWqeSize:
      return "receive WQE size";
    case Limit::kSendRingSize:
      return "send ring size";
    case Limit::kMaxCqe:
      return "max_cqe";
  }
  return "none";
}

QueueMemory QueuePairMemory(Provider provider, const DeviceLimits& limits,
                            const QueuePairRequest& request) {
  return RulesOf(provider).queue_pair(limits, request);
}

QueueMemory CompletionQueueMemory(Provider provider, const DeviceLimits& limits,
                                  uint32_t cqe) {
  return RulesOf(provider).completion_queue(limits, cqe);
}

QueueMemory Sum(const QueueMemory& a, const QueueMemory& b) {
  const Exactness exactness = Max(a.exactness, b.exactness);
  if (a.refusal) return Refused(a.refusal, exactness);
  if (b.refusal) return Refused(b.refusal, exactness);
  QueueMemory sum;
  sum.exactness = exactness;
  sum.send_ring = Sum(a.send_ring, b.send_ring);
  sum.receive_ring = Sum(a.receive_ring, b.receive_ring);
  sum.completion_ring = Sum(a.completion_ring, b.completion_ring);
  sum.send = a.send + b.send;
  sum.receive = a.receive + b.receive;
  sum.completion = a.completion + b.completion;
  sum.shared_receive = a.shared_receive + b.shared_receive;
  sum.arrays = a.arrays + b.arrays;
  sum.overhead = a.overhead + b.overhead;
  sum.buffer_bytes = a.buffer_bytes + b.buffer_bytes;
  sum.cap_send_wr = Max(a.cap_send_wr, b.cap_send_wr);
  sum.cap_send_sge = Max(a.cap_send_sge, b.cap_send_sge);
  sum.cap_inline_data = Max(a.cap_inline_data, b.cap_inline_data);
  sum.cap_recv_wr = Max(a.cap_recv_wr, b.cap_recv_wr);
  sum.cap_recv_sge = Max(a.cap_recv_sge, b.cap_recv_sge);
  sum.cap_cqe = Max(a.cap_cqe, b.cap_cqe);
  return sum;
}

uint64_t TextbookBytes(const QueuePairRequest& request) {
  return SaturatingAdd(TextbookRing(request.max_send_wr, request.max_send_sge),
                       request.uses_srq ? 0
                                        : TextbookRing(request.max_recv_wr,
                                                       request.max_recv_sge));
}

}  // namespace purser::queue_memory
