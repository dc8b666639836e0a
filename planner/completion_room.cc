// SPDX-License-Identifier: Apache-2.0
#include "planner/completion_room.h"

#include <algorithm>

#include "base/quantity.h"
#include "planner/completion_queues.h"
#include "planner/refusal.h"
#include "queue_memory/fit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatCount;

constexpr const char* kCheck = "cq_capacity";

// `room` of completion queues for the requests that complete in them.
Finding Room(const std::string& name, uint64_t room,
             const Outstanding& outstanding, const std::string& advice) {
  const auto& [asked, held] = outstanding;
  const std::string found = fmt::format(
      "{}: room for {} completions, {} requests are asked for, rings hold {}",
      name, FormatCount(room), FormatCount(asked), FormatCount(held));
  if (room < asked)
    return {Level::kFailure, kCheck, found + ", so it can overrun", advice};
  if (room < EntriesFor(asked, held))
    return {Level::kWarning, kCheck, found, advice};
  return {Level::kOk, kCheck, found, ""};
}

Finding OwnRoom(const Group& group, const GroupPlan& planned) {
  const auto& each = planned.each;
  if (group.request.uses_srq)
    return {Level::kWarning, kCheck,
            fmt::format("{}: a completion queue for each queue pair, sized for "
                        "its sends, yet receives of the shared receive queue "
                        "complete there, too",
                        group.name),
            "give the group a completion queue that is shared"};
  // It is as large as the device has them.
  return Room(group.name, each.completion_ring.slots,
              OutstandingOf(group.request, each),
              "shallower queues, or separate completion queues for sends and "
              "receives");
}

}  // namespace

bool OwnQueueHolds(const queue_memory::QueueMemory& each) {
  return each.completion_ring.slots >=
         uint64_t{each.send_ring.slots} + each.receive_ring.slots;
}

bool OwnQueueHasHeadroom(const queue_memory::QueuePairRequest& request,
                         const queue_memory::QueueMemory& each) {
  const auto [asked, held] = OutstandingOf(request, each);
  return each.completion_ring.slots >= EntriesFor(asked, held);
}

queue_memory::QueueMemory MemoryOf(
    const Device& device, const Group& group,
    const queue_memory::QueuePairRequest& request) {
  if (group.completion_queues.has_value())
    return queue_memory::QueuePairMemory(device.provider, device.limits,
                                         request);
  return queue_memory::QueuePairWithCompletionQueueMemory(
             device.provider, device.limits, request,
             queue_memory::CompletionQueueSize::kHeadroom)
      .memory;
}

bool HasRoom(const Device& device, const Group& group,
             const queue_memory::QueuePairRequest& request) {
  return group.completion_queues.has_value() ||
         OwnQueueHasHeadroom(request, MemoryOf(device, group, request));
}

bool CanOverrun(const Workload& workload, const Plan& plan) {
  for (size_t i = 0; i < workload.groups.size(); ++i)
    if (!workload.groups[i].completion_queues.has_value() &&
        !OwnQueueHolds(plan.groups[i].each))
      return true;
  return std::any_of(
      plan.completion_queues.begin(), plan.completion_queues.end(),
      [](const QueuesPlan& queues) { return queues.room() < queues.held; });
}

Finding CompletionRoom(const Workload& workload, const Plan& plan) {
  Finding worst{Level::kOk, kCheck,
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
      consider(Room(workload.completion_queues[i].name, queues.room(),
                    {queues.asked, queues.held},
                    HowToHold(plan.device, queues) +
                        ": for all that rings hold, and a fifth more than is "
                        "asked for"));
  }
  return worst;
}

}  // namespace purser::planner
