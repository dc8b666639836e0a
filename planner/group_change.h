// SPDX-License-Identifier: Apache-2.0
//
// What a pod's queues take where one group of a plan were another: its queue
// pairs, and the completion queues that they have or share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "planner/plan.h"

namespace purser::planner {

// Of a group that is not refused. It keeps references to what it is made of.
class GroupChange {
 public:
  GroupChange(const Workload& workload, const Plan& plan, size_t group);

  const Group& group() const { return workload_.groups[index_]; }

  // Bytes of the pod; 0 where `request` is refused, saves nothing, or more
  // completes than there is room for and that was not so before.
  uint64_t Saves(const queue_memory::QueuePairRequest& request) const;
  // And completions have room, and a fifth more.
  bool CostsNoMore(const queue_memory::QueuePairRequest& request) const;

 private:
  // Of the group's queue pairs and their completion queues.
  struct Cost {
    uint64_t bytes = 0;
    bool holds = false, has_headroom = false;
  };
  std::optional<Cost> CostOf(
      const queue_memory::QueuePairRequest& request) const;
  // With what completes there of the group as planned replaced by `each`'s.
  QueuesPlan Shared(const queue_memory::QueuePairRequest& request,
                    const queue_memory::QueueMemory& each) const;

  const Workload& workload_;
  const Plan& plan_;
  const size_t index_;
  Cost now_;
};

}  // namespace purser::planner
