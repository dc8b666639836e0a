// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/finding.h"
#include "planner/plan.h"

namespace purser::planner {

// The joint rule of completion queues and what completes in them: the worst of
// all in one line, "cq_capacity".
Finding CompletionRoom(const Workload& workload, const Plan& plan);

// What the rings of `each` hold has room in the completion queue that is its
// own; not so where the device has none that is large enough.
bool OwnQueueHolds(const queue_memory::QueueMemory& each);

}  // namespace purser::planner
