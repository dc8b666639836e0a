// SPDX-License-Identifier: Apache-2.0
#include "planner/completion_room.h"

#include "base/quantity.h"
#include "planner/refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatCount;

// Room for a completion of every request that can be outstanding.
Finding Room(const std::string& name, uint64_t room, uint64_t needed) {
  const uint64_t with_headroom = needed + needed / 5;
  const std::string found =
      fmt::format("{}: room for {} completions, {} requests can be outstanding",
                  name, FormatCount(room), FormatCount(needed));
  const std::string advice = fmt::format(
      "give {} entries, a fifth more than that", FormatCount(with_headroom));
  if (room < needed)
    return {Level::kFailure, "cq_capacity", found + ", so it can overrun",
            advice};
  if (room < with_headroom)
    return {Level::kWarning, "cq_capacity", found, advice};
  return {Level::kOk, "cq_capacity", found, ""};
}

// Of one queue pair alone: it cannot be shared by mistake, so it needs no
// headroom.
Finding OwnRoom(const Group& group, const GroupPlan& planned) {
  const auto& each = planned.each;
  const uint64_t needed =
      uint64_t{each.send_ring.slots} + each.receive_ring.slots;
  if (group.request.uses_srq)
    return {Level::kWarning, "cq_capacity",
            fmt::format("{}: a completion queue for each queue pair, sized for "
                        "its sends, yet receives of the shared receive queue "
                        "complete there, too",
                        group.name),
            "give the group a completion queue that is shared"};
  if (each.completion_ring.slots >= needed)
    return {Level::kOk, "cq_capacity",
            "each queue holds a completion of every request", ""};
  return {Level::kFailure, "cq_capacity",
          fmt::format("{}: a queue pair has {} requests, its completion queue "
                      "at most {}, so it can overrun",
                      group.name, FormatCount(needed),
                      FormatCount(each.completion_ring.slots)),
          "shallower queues, or separate completion queues for sends and "
          "receives"};
}

}  // namespace

Finding CompletionRoom(const Workload& workload, const Plan& plan) {
  Finding worst{
      Level::kOk, "cq_capacity",
      OfAccepted(plan) + "each queue holds a completion of every request", ""};
  const auto consider = [&worst](const Finding& finding) {
    if (finding.level > worst.level || worst.advice.empty()) {
      if (finding.level >= worst.level) worst = finding;
    }
  };
  for (size_t i = 0; i < workload.groups.size(); ++i)
    if (!workload.groups[i].completion_queues.has_value() &&
        !plan.groups[i].each.refusal)
      consider(OwnRoom(workload.groups[i], plan.groups[i]));
  for (size_t i = 0; i < plan.completion_queues.size(); ++i) {
    const QueuesPlan& queues = plan.completion_queues[i];
    if (!queues.each.refusal)
      consider(Room(workload.completion_queues[i].name,
                    uint64_t{queues.count} * queues.each.completion_ring.slots,
                    queues.completions));
  }
  return worst;
}

}  // namespace purser::planner
