// SPDX-License-Identifier: Apache-2.0
//
// Providers round: a request may often be larger at the same cost, and a
// slightly smaller one may cost half. For a request, the neighbours on both
// sides of its cost, argument by argument. Pure and freestanding, as the model;
// some ten microseconds for all of a queue pair's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {

// Of a queue pair's request.
enum class Argument : uint8_t {
  kMaxSendWr,
  kMaxSendSge,
  kMaxInlineData,
  kMaxRecvWr,
  kMaxRecvSge,
};
inline constexpr size_t kArgumentCount = 5;
inline constexpr Argument kArguments[kArgumentCount] = {
    Argument::kMaxSendWr, Argument::kMaxSendSge, Argument::kMaxInlineData,
    Argument::kMaxRecvWr, Argument::kMaxRecvSge};
const char* ArgumentName(Argument argument);  // as verbs spells it
uint32_t ValueOf(const QueuePairRequest& request, Argument argument);
QueuePairRequest With(QueuePairRequest request, Argument argument,
                      uint32_t value);

// A neighbouring value whose cost is another one.
struct Step {
  bool exists = false;  // false: none that makes sense (no queue of no entries)
  uint32_t value = 0;
  Refusal refusal;  // what lies above may not be had at all
  Charge total;     // zero where refused
};

// The values of one argument from `least` to `most` at which the cost is the
// same, all else as asked. UINT32_MAX: the provider does not look at it.
struct Plateau {
  uint32_t least = 0, most = 0;
  Step below;  // least - 1: the next cheaper one
  Step above;  // most + 1: the next dearer one
};

// What the cost is that of.
enum class Scope : uint8_t {
  kQueuePair,
  // With one of its own that has headroom (fit.h, CompletionQueueSize).
  kWithCompletionQueue,
};

struct Cliffs {
  QueueMemory memory;  // of the request; where refused, there is nothing else
  Plateau plateaus[kArgumentCount];  // by Argument
  // With only SEND, RDMA WRITE and READ among the send operations: exists where
  // that costs less. The owner must then post nothing else. `value`: SendOps.
  Step plain_send_ops;

  const Plateau& of(Argument argument) const {
    return plateaus[static_cast<size_t>(argument)];
  }
};

Cliffs QueuePairCliffs(Provider provider, const DeviceLimits& limits,
                       const QueuePairRequest& request,
                       Scope scope = Scope::kQueuePair);

// Of `cqe`; all zero where it is refused.
Plateau CompletionQueuePlateau(Provider provider, const DeviceLimits& limits,
                               uint32_t cqe);

// Of max_wr; all zero where it is refused.
Plateau SharedReceiveQueuePlateau(Provider provider, const DeviceLimits& limits,
                                  const SharedReceiveQueueRequest& request);

// Bytes that a step saves; 0 where it does not.
constexpr uint64_t Saves(const QueueMemory& memory, const Step& step) {
  const uint64_t now = memory.total().total();
  const uint64_t then = step.total.total();
  return step.exists && !step.refusal && then < now ? now - then : 0;
}

}  // namespace purser::queue_memory
