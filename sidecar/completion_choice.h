// SPDX-License-Identifier: Apache-2.0
//
// Which completion queue a queue pair gets, by what that costs. Pure. A queue
// that is shared has an entry for every request that its queue pairs' queues
// can really hold, and a fifth more; one that is not has exactly as many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "queue_memory/queue_memory.h"

namespace purser::sidecar {

// What a queue pair may use.
struct CompletionOffer {
  enum class Kind {
    kOwn,       // one of its own
    kShared,    // one of `shared`, or one that others may use after it
    kCheapest,  // whichever costs least
  };
  // One that there is.
  struct Shared {
    uint64_t slots = 0;            // of its queue pairs
    uint64_t extra_slots = 0;      // as below, where it has none of these yet
    uint32_t cqe = 0;              // entries that it has
    queue_memory::Charge charged;  // for it
    bool may_grow = true;          // the device has not refused that
  };
  Kind kind = Kind::kOwn;
  std::vector<Shared> shared;
  uint64_t extra_slots = 0;  // of the queue pair's shared receive queue
};

struct CompletionChoice {
  enum class Kind { kOwn, kFurther, kExisting };
  Kind kind = Kind::kOwn;
  size_t existing = 0;  // of CompletionOffer::shared
  // To create it with, or to grow it to; 0: it has room.
  uint32_t cqe = 0;
  queue_memory::QueueMemory memory;  // of it, then; empty where it has room
  queue_memory::Charge growth;       // what it then costs more than now
  // Completions that the queue pair may have outstanding. Fewer than slots only
  // where the device has no queue so large.
  uint64_t room = 0;
};

// The smallest that is shared by queue pairs of so many slots together.
CompletionChoice SmallestShared(queue_memory::Provider provider,
                                const queue_memory::DeviceLimits& limits,
                                uint64_t slots);

// The cheapest for a queue pair of `slots`; of equally cheap ones one that
// exists, then one that others may use. `memory.refusal` says why there is
// none.
CompletionChoice ChooseCompletionQueue(queue_memory::Provider provider,
                                       const queue_memory::DeviceLimits& limits,
                                       uint64_t slots,
                                       const CompletionOffer& offer);

}  // namespace purser::sidecar
