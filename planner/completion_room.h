// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/finding.h"
#include "planner/plan.h"

namespace purser::planner {

// The joint rule of completion queues and what completes in them: the worst of
// all in one line, "cq_capacity".
Finding CompletionRoom(const Workload& workload, const Plan& plan);

}  // namespace purser::planner
