// SPDX-License-Identifier: Apache-2.0
#include "planner/group_change.h"

#include "planner/completion_queues.h"
#include "planner/completion_room.h"

namespace purser::planner {

using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;

GroupChange::GroupChange(const Workload& workload, const Plan& plan,
                         size_t group)
    : workload_(workload), plan_(plan), index_(group) {
  now_ = CostOf(workload.groups[group].request).value_or(Cost{});
}

uint64_t GroupChange::Saves(const QueuePairRequest& request) const {
  const std::optional<Cost> then = CostOf(request);
  if (!then.has_value() || (now_.holds && !then->holds) ||
      then->bytes >= now_.bytes)
    return 0;
  return now_.bytes - then->bytes;
}

bool GroupChange::CostsNoMore(const QueuePairRequest& request) const {
  const std::optional<Cost> then = CostOf(request);
  return then.has_value() && then->bytes <= now_.bytes && then->has_headroom;
}

std::optional<GroupChange::Cost> GroupChange::CostOf(
    const QueuePairRequest& request) const {
  const QueueMemory each = MemoryOf(plan_.device, group(), request);
  if (each.refusal) return std::nullopt;
  Cost cost{.bytes = each.total().total() * group().count};
  if (!group().completion_queues.has_value()) {
    cost.holds = OwnQueueHolds(each);
    cost.has_headroom = OwnQueueHasHeadroom(request, each);
    return cost;
  }
  const QueuesPlan queues = Shared(request, each);
  if (queues.each.refusal) return std::nullopt;
  cost.bytes += queues.each.total().total() * queues.count;
  cost.holds = queues.room() >= queues.held;
  cost.has_headroom = queues.room() >= queues.needed();
  return cost;
}

QueuesPlan GroupChange::Shared(const QueuePairRequest& request,
                               const QueueMemory& each) const {
  const size_t queues = *group().completion_queues;
  const QueuesPlan& planned = plan_.completion_queues[queues];
  const Outstanding before =
      OutstandingOf(group().request, plan_.groups[index_].each);
  const Outstanding after = OutstandingOf(request, each);
  const auto replace = [&](uint64_t sum, uint64_t old, uint64_t by) {
    return sum - old * group().count + by * group().count;
  };
  return SizeCompletionQueues(
      plan_.device, workload_.completion_queues[queues],
      {.asked = replace(planned.asked, before.asked, after.asked),
       .held = replace(planned.held, before.held, after.held)});
}

}  // namespace purser::planner
