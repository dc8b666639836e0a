// SPDX-License-Identifier: Apache-2.0
#include "planner/fit.h"

#include <utility>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "planner/completion_room.h"
#include "planner/fit_bounds.h"
#include "planner/plan.h"
#include "queue_memory/fit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::Argument;
using queue_memory::LargestThatFits;
using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;

uint64_t Slots(const QueueMemory& memory) {
  return uint64_t{memory.send_ring.slots} + memory.receive_ring.slots +
         memory.shared_receive_ring.slots;
}

class Fitter {
 public:
  Fitter(const Workload& workload, const Device& device)
      : device_(device), bounds_(workload, device), scaled_(workload) {}

  absl::StatusOr<Workload> Fit(uint64_t budget) {
    bounds_.Scale(0, &scaled_);
    PURSER_ASSIGN_OR_RETURN(const Plan least, MakePlan(scaled_, device_));
    PURSER_RETURN_IF_ERROR(CheckLeast(least, budget));
    const Factor factor = LargestThatFits(UINT32_MAX, [&](Factor each) {
      bounds_.Scale(each, &scaled_);
      return FitsInto(budget, scaled_);
    });
    bounds_.Scale(factor, &scaled_);
    RaiseOwn();
    Workload raised = scaled_;
    RaiseShared(&raised);
    return FitsInto(budget, raised) ? std::move(raised) : std::move(scaled_);
  }

 private:
  QueueMemory SharedMemory(
      const queue_memory::SharedReceiveQueueRequest& request) const {
    return queue_memory::SharedReceiveQueueMemory(device_.provider,
                                                  device_.limits, request);
  }

  // `plan`: of the least depths.
  absl::Status CheckLeast(const Plan& plan, uint64_t budget) const {
    if (!plan.refusals.empty()) {
      const auto& [where, text] = plan.refusals[0];
      return absl::InvalidArgumentError(
          fmt::format("{}{}{}", where, where.empty() ? "" : ": ", text));
    }
    if (CanOverrun(scaled_, plan)) {
      const Finding room = CompletionRoom(scaled_, plan);
      return absl::InvalidArgumentError(
          fmt::format("not even the least depths have room in completion "
                      "queues: {}; {}",
                      room.found, room.advice));
    }
    if (plan.pod.queues.total() > budget)
      return absl::ResourceExhaustedError(fmt::format(
          "{} queue pairs take {} at the least depth, more than the {} to fit "
          "into: fewer queue pairs, or shared completion queues",
          base::FormatCount(plan.pod.queue_pairs),
          base::FormatBytes(plan.pod.queues.total()),
          base::FormatBytes(budget)));
    return absl::OkStatus();
  }

  bool FitsInto(uint64_t budget, const Workload& workload) const {
    const auto plan = MakePlan(workload, device_);
    return plan.ok() && plan->refusals.empty() &&
           plan->pod.queues.total() <= budget;
  }

  void RaiseOwn() {
    for (Group& group : scaled_.groups)
      if (!group.completion_queues.has_value()) Raise(group);
  }
  // Shared completion queues are sized by the slots, which do not grow, and by
  // the depths of all together, so that what is raised may take more. Those of
  // a given size are full already.
  void RaiseShared(Workload* workload) const {
    for (Group& group : workload->groups)
      if (group.completion_queues.has_value() &&
          workload->completion_queues[*group.completion_queues].cqe == 0)
        Raise(group);
    for (size_t i = 0; i < workload->shared_receive_queues.size(); ++i)
      if (!bounds_.CompletesInGivenQueue(i))
        Raise(workload->shared_receive_queues[i]);
  }

  void Raise(Group& group) const {
    const QueueMemory now = MemoryOf(device_, group, group.request);
    for (const Argument argument :
         {Argument::kMaxSendWr, Argument::kMaxRecvWr}) {
      if (ValueOf(group.request, argument) == 0) continue;
      const uint32_t depth = LargestThatFits(kMostDepth, [&](uint32_t value) {
        const QueuePairRequest deeper = With(group.request, argument, value);
        return HasRoom(device_, group, deeper) &&
               IsNoMore(MemoryOf(device_, group, deeper), now,
                        group.completion_queues.has_value());
      });
      if (depth > ValueOf(group.request, argument))
        group.request = With(group.request, argument, depth);
    }
  }
  void Raise(SharedReceiveQueues& queues) const {
    const QueueMemory now = SharedMemory(queues.request);
    queues.request.max_wr = LargestThatFits(kMostDepth, [&](uint32_t max_wr) {
      return IsNoMore(SharedMemory({max_wr, queues.request.max_sge}), now,
                      true);
    });
  }
  static bool IsNoMore(const QueueMemory& memory, const QueueMemory& now,
                       bool same_slots) {
    return !memory.refusal && memory.total().total() <= now.total().total() &&
           (!same_slots || Slots(memory) <= Slots(now));
  }

  const Device& device_;
  const FitBounds bounds_;
  Workload scaled_;
};

}  // namespace

absl::StatusOr<Workload> Fit(const Workload& workload, const Device& device,
                             uint64_t budget) {
  return Fitter(workload, device).Fit(budget);
}

}  // namespace purser::planner
