// SPDX-License-Identifier: Apache-2.0
//
// What fits into what is left: a queue pair together with its completion
// queue, and the deepest send queue that a budget still takes. Pure and
// freestanding, as the model.
#pragma once

#include <cstdint>

#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {

struct QueuePairWithCompletionQueue {
  QueueMemory memory;  // of both together; cap_cqe is the completion queue's
  uint32_t cqe = 0;    // to create the completion queue with; 0 when refused
};

// How large a completion queue is.
enum class CompletionQueueSize : uint8_t {
  kSlots,     // a completion of every entry that the rings can really hold
  kHeadroom,  // that, and at least a fifth more than the depths asked for: what
              // applications are told
};

// A fifth more. `requests` below 2^63.
constexpr uint64_t WithHeadroom(uint64_t requests) {
  return requests + requests / 5;
}

// One queue pair and one completion queue of its own, of at least one entry, at
// most what the device takes: where `cqe` is smaller than the slots of both
// rings, the completion queue can overflow. With an SRQ the send ring alone is
// counted.
QueuePairWithCompletionQueue QueuePairWithCompletionQueueMemory(
    Provider provider, const DeviceLimits& limits,
    const QueuePairRequest& request,
    CompletionQueueSize size = CompletionQueueSize::kSlots);

// What is left of a budget, by bound.
struct Headroom {
  uint64_t total = UINT64_MAX;      // container-charged and node bytes together
  uint64_t container = UINT64_MAX;  // container-charged bytes alone
};

constexpr bool Fits(const Charge& charge, const Headroom& headroom) {
  return charge.container <= headroom.container &&
         charge.container <= headroom.total &&
         charge.node <= headroom.total - charge.container;
}

// The largest n in [1, most] for which `fits(n)`; 0 if there is none. What fits
// must fit with every smaller n, too.
template <typename Predicate>
constexpr uint32_t LargestThatFits(uint32_t most, Predicate fits) {
  uint32_t good = 0;
  uint32_t bad_above = most;  // everything above is out of range or bad
  while (good < bad_above) {
    const uint32_t middle = bad_above - (bad_above - good) / 2;
    if (fits(middle))
      good = middle;
    else
      bad_above = middle - 1;
  }
  return good;
}

// The largest max_send_wr with which `request`, otherwise as it is, is accepted
// by the provider and the device and fits `headroom` together with its
// completion queue (QueuePairWithCompletionQueueMemory). 0: none does.
// request.max_send_wr itself does not matter. A few microseconds.
uint32_t LargestSendWr(Provider provider, const DeviceLimits& limits,
                       const QueuePairRequest& request,
                       const Headroom& headroom);

}  // namespace purser::queue_memory
