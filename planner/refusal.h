// SPDX-License-Identifier: Apache-2.0
//
// A limit of the memory model in words, with what to do, and its place in the
// workload.
#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace purser::planner {

Refusal RefusalOf(const Workload& workload, size_t group_index,
                  const Device& device, const queue_memory::Refusal& refusal);
Refusal RefusalOf(const Workload& workload, const SharedReceiveQueues& queues,
                  const Device& device, const queue_memory::Refusal& refusal);
Refusal RefusalOf(const Workload& workload, const CompletionQueues& queues,
                  const Device& device, const queue_memory::Refusal& refusal);

// Before figures of a plan that are without what is refused; else "".
std::string OfAccepted(const Plan& plan);

// All that refuses `request`, one limit after the other as each is met, and
// what is then left of it. `first`: what refused it together with a completion
// queue of its own; told where the queue pair alone is accepted.
struct Refusals {
  std::vector<queue_memory::Refusal> all;
  queue_memory::QueuePairRequest accepted;
};
Refusals AllRefusals(const Device& device,
                     queue_memory::QueuePairRequest request,
                     const queue_memory::Refusal& first = {});

// "w.yaml:12:5: groups[2]"; without the place for what is made from flags.
std::string Where(const Workload& workload, base::YamlMark mark,
                  const std::string& path);
std::string WhereGroup(const Workload& workload, size_t group_index);

}  // namespace purser::planner
