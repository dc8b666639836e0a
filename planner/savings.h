// SPDX-License-Identifier: Apache-2.0
//
// The neighbours of what is asked (queue_memory/cliffs.h): figures that a
// little less, or a narrower list of operations, makes much cheaper, and what
// could be had for the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace purser::planner {

struct Saving {
  std::string group;     // or the name of shared queues
  std::string argument;  // "max_send_wr", "send_ops", "cqe"
  std::string from, to;
  uint64_t bytes = 0;  // of a pod, if this alone is changed
};

// More of one argument that costs nothing, all else as asked.
struct SameCost {
  std::string group;
  std::string argument;  // "max_send_wr"
  uint32_t asked = 0, most = 0;
};

struct Neighbours {
  std::vector<Saving> savings;      // largest first
  std::vector<SameCost> same_cost;  // of the groups that take most
};

// `most` savings among the 1,000 groups that take most, and what costs the same
// of the first `most` of these groups.
Neighbours FindNeighbours(const Workload& workload, const Plan& plan,
                          size_t most);

}  // namespace purser::planner
