// SPDX-License-Identifier: Apache-2.0
#include "planner/warnings.h"

#include <algorithm>

#include "base/quantity.h"
#include "planner/completion_room.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatBytes;
using base::FormatCount;

// What container runtimes usually leave.
constexpr uint64_t kUsualMemlock = 8 << 20;
// Of one resource: more make a message that the kubelet does not take.
constexpr uint64_t kMostUnits = 205'019;

std::string Exactness(const Plan& plan) {
  switch (plan.exactness) {
    case queue_memory::Exactness::kExact:
      return "";
    case queue_memory::Exactness::kEstimated:
      return fmt::format(
          "some figures of {} are estimates: measure one queue pair on the "
          "device before you rely on them",
          plan.device.name);
    case queue_memory::Exactness::kFallback:
      return fmt::format(
          "no rule is known for the provider of {}: these are cautious "
          "guesses, several times too high for most, and who pays is not known",
          plan.device.name);
  }
  return "";
}

std::string Pinned(const Plan& plan) {
  const uint64_t bytes = plan.pod.queues.container;
  if (!queue_memory::TraitsOf(plan.device.provider).pins_rings ||
      bytes <= kUsualMemlock)
    return "";
  return fmt::format(
      "rings are pinned: about {} count against RLIMIT_MEMLOCK of the process "
      "that creates them, often {}; raise it in the container runtime, or give "
      "IPC_LOCK",
      FormatBytes(bytes), FormatBytes(kUsualMemlock));
}

std::string Unseen(const Plan& plan) {
  if (plan.pod.queues.node == 0) return "";
  return fmt::format(
      "{} of each pod lie in the kernel, where no cgroup is charged: no memory "
      "limit of a pod and no eviction sees them, so somebody must reserve them",
      FormatBytes(plan.pod.queues.node));
}

std::string TooMany(const Workload& workload, const Plan& plan) {
  const Device& device = plan.device;
  const uint64_t most = device.counts.max_qp;
  const bool known = device.opened || device.told_counts.max_qp != 0;
  // Too many for one pod are a refusal where it is known.
  if (most == 0 || plan.node.queue_pairs <= most ||
      (known && plan.pod.queue_pairs > most))
    return "";
  return fmt::format(
      "{} queue pairs of {} pod{} on one node are more than the {} that {} {} "
      "(max_qp): {}",
      FormatCount(plan.node.queue_pairs), workload.pods_per_node,
      workload.pods_per_node == 1 ? "" : "s", FormatCount(most), device.name,
      Has(device, device.told_counts.max_qp),
      known ? "fewer pods for each device"
            : "fewer of them, or give the limit maxQp where yours has more");
}

std::string TooManyUnits(const Workload& workload, const Plan& plan) {
  const uint64_t units = plan.units() * workload.pods_per_node;
  if (units <= kMostUnits) return "";
  return fmt::format(
      "{} units of rdma/wqe-mib on one node are more than the {} that the "
      "kubelet takes of one resource",
      FormatCount(units), FormatCount(kMostUnits));
}

// The completion queue of one queue pair is sized for its sends, but receives
// from a shared queue complete there as well.
std::string ReceivesOverrun(const Workload& workload) {
  const auto group = std::find_if(
      workload.groups.begin(), workload.groups.end(), [](const Group& each) {
        return each.request.uses_srq && !each.completion_queues.has_value();
      });
  if (group == workload.groups.end()) return "";
  return fmt::format(
      "group {}: completion queues of one queue pair each are sized for its "
      "sends, yet receives of the shared receive queue complete there, too: "
      "give the group a completionQueue that is shared",
      group->name);
}

// The device has no completion queue that is as large as the rings are.
std::string SendsOverrun(const Workload& workload, const Plan& plan) {
  size_t first = 0;
  uint64_t count = 0;
  for (size_t i = 0; i < workload.groups.size(); ++i) {
    if (workload.groups[i].completion_queues.has_value() ||
        plan.groups[i].each.refusal || OwnQueueHolds(plan.groups[i].each))
      continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return "";
  const auto& each = plan.groups[first].each;
  return fmt::format(
      "group {}{}: the completion queue of each queue pair has room for {}, "
      "the "
      "most of {}, but {} requests can be outstanding: it can overrun; ask for "
      "shallower queues, or separate completion queues for sends and receives",
      workload.groups[first].name,
      count == 1 ? "" : fmt::format(" (and {} more)", FormatCount(count - 1)),
      FormatCount(each.completion_ring.slots), plan.device.name,
      FormatCount(uint64_t{each.send_ring.slots} + each.receive_ring.slots));
}

}  // namespace

void AddWarnings(const Workload& workload, Plan* plan) {
  for (const std::string& warning :
       {Exactness(*plan), Unseen(*plan), Pinned(*plan),
        TooMany(workload, *plan), TooManyUnits(workload, *plan),
        ReceivesOverrun(workload), SendsOverrun(workload, *plan)})
    if (!warning.empty()) plan->warnings.push_back(warning);
}

}  // namespace purser::planner
