// SPDX-License-Identifier: Apache-2.0
#include "planner/fit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "planner/completion_room.h"
#include "planner/plan.h"
#include "queue_memory/fit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::Argument;
using queue_memory::LargestThatFits;
using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;

// Factors are whole numbers of this.
constexpr uint64_t kOne = 4096;

// What a group's depths may be at most.
struct Ceiling {
  uint32_t send = 0, receive = 0;
  // Of the factor: beyond it a completion queue of its own would overrun.
  uint32_t numerator = UINT32_MAX;
};

uint64_t Slots(const QueueMemory& memory) {
  return uint64_t{memory.send_ring.slots} + memory.receive_ring.slots +
         memory.shared_receive_ring.slots;
}

class Fitter {
 public:
  Fitter(const Workload& workload, const Device& device)
      : asked_(workload), device_(device), scaled_(workload) {}

  absl::StatusOr<Workload> Fit(uint64_t budget) {
    FindCeilings();
    Scale(0);
    PURSER_ASSIGN_OR_RETURN(const Plan least, MakePlan(scaled_, device_));
    if (!least.refusals.empty())
      return absl::InvalidArgumentError(fmt::format(
          "{}{}{}", least.refusals[0].where,
          least.refusals[0].where.empty() ? "" : ": ", least.refusals[0].text));
    if (least.pod.queues.total() > budget)
      return absl::ResourceExhaustedError(fmt::format(
          "{} queue pairs take {} at the least depth, more than the {} to fit "
          "into: fewer queue pairs, or shared completion queues",
          base::FormatCount(least.pod.queue_pairs),
          base::FormatBytes(least.pod.queues.total()),
          base::FormatBytes(budget)));
    const uint32_t factor = LargestThatFits(UINT32_MAX, [&](uint32_t n) {
      Scale(n);
      return FitsInto(budget, scaled_);
    });
    Scale(factor);
    RaiseOwn();
    Workload raised = scaled_;
    RaiseShared(&raised);
    return FitsInto(budget, raised) ? std::move(raised) : std::move(scaled_);
  }

 private:
  QueueMemory MemoryOf(const Group& group,
                       const QueuePairRequest& request) const {
    if (group.completion_queues.has_value())
      return queue_memory::QueuePairMemory(device_.provider, device_.limits,
                                           request);
    return queue_memory::QueuePairWithCompletionQueueMemory(
               device_.provider, device_.limits, request,
               queue_memory::CompletionQueueSize::kHeadroom)
        .memory;
  }
  QueueMemory MemoryOf(
      const queue_memory::SharedReceiveQueueRequest& request) const {
    return queue_memory::SharedReceiveQueueMemory(device_.provider,
                                                  device_.limits, request);
  }

  // The deepest that the device makes, the other side of 1.
  uint32_t CeilingOf(const Group& group, Argument argument) const {
    QueuePairRequest request = group.request;
    request.max_send_wr = std::min(request.max_send_wr, 1u);
    request.max_recv_wr = std::min(request.max_recv_wr, 1u);
    return LargestThatFits(kMostDepth, [&](uint32_t depth) {
      return !MemoryOf(group, With(request, argument, depth)).refusal;
    });
  }

  bool Holds(const Group& group, const QueuePairRequest& request) const {
    return group.completion_queues.has_value() ||
           OwnQueueHolds(MemoryOf(group, request));
  }

  void FindCeilings() {
    for (const Group& group : asked_.groups) {
      Ceiling ceiling{CeilingOf(group, Argument::kMaxSendWr),
                      CeilingOf(group, Argument::kMaxRecvWr)};
      if (!group.completion_queues.has_value())
        ceiling.numerator = LargestThatFits(UINT32_MAX, [&](uint32_t n) {
          return Holds(group, Scaled(group.request, n, ceiling));
        });
      ceilings_.push_back(ceiling);
    }
    for (const SharedReceiveQueues& queues : asked_.shared_receive_queues)
      shared_ceilings_.push_back(
          LargestThatFits(kMostDepth, [&](uint32_t max_wr) {
            return !MemoryOf({max_wr, queues.request.max_sge}).refusal;
          }));
  }

  static uint32_t Scaled(uint32_t depth, uint32_t numerator, uint32_t ceiling) {
    if (depth == 0) return 0;
    const uint64_t scaled = uint64_t{depth} * numerator / kOne;
    return static_cast<uint32_t>(
        std::max<uint64_t>(1, std::min<uint64_t>(scaled, ceiling)));
  }

  static QueuePairRequest Scaled(QueuePairRequest request, uint32_t numerator,
                                 const Ceiling& ceiling) {
    request.max_send_wr = Scaled(request.max_send_wr, numerator, ceiling.send);
    request.max_recv_wr =
        Scaled(request.max_recv_wr, numerator, ceiling.receive);
    return request;
  }

  void Scale(uint32_t numerator) {
    for (size_t i = 0; i < asked_.groups.size(); ++i)
      scaled_.groups[i].request =
          Scaled(asked_.groups[i].request,
                 std::min(numerator, ceilings_[i].numerator), ceilings_[i]);
    for (size_t i = 0; i < asked_.shared_receive_queues.size(); ++i)
      scaled_.shared_receive_queues[i].request.max_wr =
          Scaled(asked_.shared_receive_queues[i].request.max_wr, numerator,
                 shared_ceilings_[i]);
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
  // the depths of all together, so that what is raised may take more.
  void RaiseShared(Workload* workload) const {
    for (Group& group : workload->groups)
      if (group.completion_queues.has_value()) Raise(group);
    for (SharedReceiveQueues& queues : workload->shared_receive_queues)
      Raise(queues);
  }

  void Raise(Group& group) const {
    const QueueMemory now = MemoryOf(group, group.request);
    for (const Argument argument :
         {Argument::kMaxSendWr, Argument::kMaxRecvWr}) {
      if (ValueOf(group.request, argument) == 0) continue;
      const uint32_t depth = LargestThatFits(kMostDepth, [&](uint32_t value) {
        const QueuePairRequest deeper = With(group.request, argument, value);
        return Holds(group, deeper) &&
               IsNoMore(MemoryOf(group, deeper), now,
                        group.completion_queues.has_value());
      });
      if (depth > ValueOf(group.request, argument))
        group.request = With(group.request, argument, depth);
    }
  }
  void Raise(SharedReceiveQueues& queues) const {
    const QueueMemory now = MemoryOf(queues.request);
    queues.request.max_wr = LargestThatFits(kMostDepth, [&](uint32_t max_wr) {
      return IsNoMore(MemoryOf({max_wr, queues.request.max_sge}), now, true);
    });
  }
  static bool IsNoMore(const QueueMemory& memory, const QueueMemory& now,
                       bool same_slots) {
    return !memory.refusal && memory.total().total() <= now.total().total() &&
           (!same_slots || Slots(memory) <= Slots(now));
  }

  const Workload& asked_;
  const Device& device_;
  Workload scaled_;
  std::vector<Ceiling> ceilings_;  // by group
  std::vector<uint32_t> shared_ceilings_;
};

}  // namespace

absl::StatusOr<Workload> Fit(const Workload& workload, const Device& device,
                             uint64_t budget) {
  return Fitter(workload, device).Fit(budget);
}

}  // namespace purser::planner
