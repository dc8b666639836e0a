// SPDX-License-Identifier: Apache-2.0
#include "planner/completion_room.h"

#include "base/quantity.h"
#include "planner/refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatCount;

// `room` of completion queues for the requests that complete in them.
Finding Room(const std::string& name, uint64_t room, uint64_t asked,
             uint64_t held) {
  const uint64_t entries = EntriesFor(asked, held);
  const std::string found = fmt::format(
      "{}: room for {} completions, {} requests are asked for, rings hold {}",
      name, FormatCount(room), FormatCount(asked), FormatCount(held));
  const std::string advice = fmt::format(
      "give {} entries: for all that rings hold, a fifth more than asked for",
      FormatCount(entries));
  if (room < asked)
    return {Level::kFailure, "cq_capacity", found + ", so it can overrun",
            advice};
  if (room < entries) return {Level::kWarning, "cq_capacity", found, advice};
  return {Level::kOk, "cq_capacity", found, ""};
}

Finding OwnRoom(const Group& group, const GroupPlan& planned) {
  const auto& each = planned.each;
  if (group.request.uses_srq)
    return {Level::kWarning, "cq_capacity",
            fmt::format("{}: a completion queue for each queue pair, sized for "
                        "its sends, yet receives of the shared receive queue "
                        "complete there, too",
                        group.name),
            "give the group a completion queue that is shared"};
  Finding finding =
      Room(group.name, each.completion_ring.slots,
           uint64_t{group.request.max_send_wr} + group.request.max_recv_wr,
           uint64_t{each.send_ring.slots} + each.receive_ring.slots);
  // As large as the device has them.
  if (finding.level != Level::kOk)
    finding.advice =
        "shallower queues, or separate completion queues for sends and "
        "receives";
  return finding;
}

}  // namespace

bool OwnQueueHolds(const queue_memory::QueueMemory& each) {
  return each.completion_ring.slots >=
         uint64_t{each.send_ring.slots} + each.receive_ring.slots;
}

Finding CompletionRoom(const Workload& workload, const Plan& plan) {
  Finding worst{Level::kOk, "cq_capacity",
                OfAccepted(plan) +
                    "each queue holds a completion of every request, and "
                    "a fifth more",
                ""};
  const auto consider = [&worst](const Finding& finding) {
    if (finding.level > worst.level) worst = finding;
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
                    queues.asked, queues.held));
  }
  return worst;
}

}  // namespace purser::planner
