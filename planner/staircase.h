// SPDX-License-Identifier: Apache-2.0
//
// What a queue pair costs by its depth: providers round, so it is a staircase.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/device.h"
#include "queue_memory/queue_memory.h"

namespace purser::planner {

// Depths `first` to `last` cost `bytes`, with a completion queue.
struct Stair {
  uint32_t first = 0, last = 0;
  uint64_t bytes = 0;
  // One more costs at least a fifth more.
  bool cliff = false;
};

// Of `request` with both depths (but those that are 0) at `least` and more, up
// to `most` or to what the device takes. Stairs narrower than 1 % of the depth
// are shown in part. Empty where the device refuses the least.
std::vector<Stair> StaircaseOf(const Device& device,
                               const queue_memory::QueuePairRequest& request,
                               uint32_t least, uint32_t most);

}  // namespace purser::planner
