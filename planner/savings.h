// SPDX-License-Identifier: Apache-2.0
//
// Where a workload pays for what it does not get: figures that a little less,
// or a narrower list of operations, makes much cheaper (queue_memory/cliffs.h).
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

// The largest `most`, largest first; among the 1,000 groups that take most.
std::vector<Saving> FindSavings(const Workload& workload, const Plan& plan,
                                size_t most);

}  // namespace purser::planner
