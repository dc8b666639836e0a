// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/cliffs.h"

#include "queue_memory/arithmetic.h"
#include "queue_memory/fit.h"
#include "queue_memory/registry.h"

namespace purser::queue_memory {
namespace {

// The last value from `value` towards `end` for which `same` holds without a
// break: by steps that double, then by halves. Where a cost returned to what it
// was within one such step, the break would be passed over; no rule does that.
template <typename Same>
uint32_t LastSame(uint32_t value, uint32_t end, Same same) {
  const bool upwards = end >= value;
  const uint32_t room = upwards ? end - value : value - end;
  const auto at = [&](uint32_t distance) {
    return upwards ? value + distance : value - distance;
  };
  uint32_t good = 0, bad = room;  // distances; `bad` only where it is
  for (uint32_t step = 1;; step = Min(step, UINT32_MAX / 2) * 2) {
    if (good == room) return at(room);
    const uint32_t next = good + Min(step, room - good);
    if (!same(at(next))) {
      bad = next;
      break;
    }
    good = next;
  }
  while (bad - good > 1) {
    const uint32_t middle = good + (bad - good) / 2;
    (same(at(middle)) ? good : bad) = middle;
  }
  return at(good);
}

template <typename Cost>
Step StepTo(uint32_t value, Cost cost) {
  const QueueMemory memory = cost(value);
  return {.exists = true,
          .value = value,
          .refusal = memory.refusal,
          .total = memory.total()};
}

// `cost(value)` is what the object costs. Below `floor` nothing makes sense.
template <typename Cost>
Plateau PlateauOf(uint32_t value, uint32_t floor, Cost cost) {
  const QueueMemory now = cost(value);
  if (now.refusal) return {};
  const auto same = [&](uint32_t other) {
    const QueueMemory memory = cost(other);
    return !memory.refusal && memory.total() == now.total();
  };
  Plateau plateau{.least = LastSame(value, Min(floor, value), same),
                  .most = LastSame(value, UINT32_MAX, same)};
  if (plateau.least > floor) plateau.below = StepTo(plateau.least - 1, cost);
  if (plateau.most < UINT32_MAX) plateau.above = StepTo(plateau.most + 1, cost);
  return plateau;
}

QueueMemory Memory(Provider provider, const DeviceLimits& limits,
                   const QueuePairRequest& request, Scope scope) {
  return scope == Scope::kQueuePair
             ? QueuePairMemory(provider, limits, request)
             : QueuePairWithCompletionQueueMemory(
                   provider, limits, request, CompletionQueueSize::kHeadroom)
                   .memory;
}

Step PlainSendOps(Provider provider, const DeviceLimits& limits,
                  const QueuePairRequest& request, Scope scope,
                  const QueueMemory& now) {
  if (request.send_ops == kSendOpsPlain ||
      !TraitsOf(provider).send_ops_change_sizes)
    return {};
  QueuePairRequest plain = request;
  plain.send_ops = kSendOpsPlain;
  const Step step = StepTo(kSendOpsPlain, [&](uint32_t) {
    return Memory(provider, limits, plain, scope);
  });
  return Saves(now, step) > 0 ? step : Step{};
}

uint32_t& Field(QueuePairRequest& request, Argument argument) {
  switch (argument) {
    case Argument::kMaxSendSge:
      return request.max_send_sge;
    case Argument::kMaxInlineData:
      return request.max_inline_data;
    case Argument::kMaxRecvWr:
      return request.max_recv_wr;
    case Argument::kMaxRecvSge:
      return request.max_recv_sge;
    case Argument::kMaxSendWr:
      break;
  }
  return request.max_send_wr;
}

}  // namespace

const char* ArgumentName(Argument argument) {
  switch (argument) {
    case Argument::kMaxSendWr:
      return "max_send_wr";
    case Argument::kMaxSendSge:
      return "max_send_sge";
    case Argument::kMaxInlineData:
      return "max_inline_data";
    case Argument::kMaxRecvWr:
      return "max_recv_wr";
    case Argument::kMaxRecvSge:
      return "max_recv_sge";
  }
  return "unknown";
}

uint32_t ValueOf(const QueuePairRequest& request, Argument argument) {
  QueuePairRequest copy = request;
  return Field(copy, argument);
}

QueuePairRequest With(QueuePairRequest request, Argument argument,
                      uint32_t value) {
  Field(request, argument) = value;
  return request;
}

Cliffs QueuePairCliffs(Provider provider, const DeviceLimits& limits,
                       const QueuePairRequest& request, Scope scope) {
  Cliffs cliffs{.memory = Memory(provider, limits, request, scope)};
  if (cliffs.memory.refusal) return cliffs;
  for (const Argument argument : kArguments) {
    const uint32_t value = ValueOf(request, argument);
    const uint32_t floor = argument == Argument::kMaxInlineData ? 0 : 1;
    cliffs.plateaus[static_cast<size_t>(argument)] =
        PlateauOf(value, floor, [&](uint32_t other) {
          return Memory(provider, limits, With(request, argument, other),
                        scope);
        });
  }
  cliffs.plain_send_ops =
      PlainSendOps(provider, limits, request, scope, cliffs.memory);
  return cliffs;
}

Plateau CompletionQueuePlateau(Provider provider, const DeviceLimits& limits,
                               uint32_t cqe) {
  return PlateauOf(cqe, 1, [&](uint32_t other) {
    return CompletionQueueMemory(provider, limits, other);
  });
}

Plateau SharedReceiveQueuePlateau(Provider provider, const DeviceLimits& limits,
                                  const SharedReceiveQueueRequest& request) {
  return PlateauOf(request.max_wr, 1, [&](uint32_t max_wr) {
    return SharedReceiveQueueMemory(provider, limits,
                                    {max_wr, request.max_sge});
  });
}

}  // namespace purser::queue_memory
