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
// And a fifth more than was asked for.
bool OwnQueueHasHeadroom(const queue_memory::QueuePairRequest& request,
                         const queue_memory::QueueMemory& each);

// Of one queue pair, with its completion queue where that is its own.
queue_memory::QueueMemory MemoryOf(
    const Device& device, const Group& group,
    const queue_memory::QueuePairRequest& request);
// Completions of the queue pair have room in its completion queue, and a fifth
// more; true where that is shared.
bool HasRoom(const Device& device, const Group& group,
             const queue_memory::QueuePairRequest& request);

// More can complete in a queue, of one queue pair or shared, than it holds.
bool CanOverrun(const Workload& workload, const Plan& plan);

}  // namespace purser::planner
