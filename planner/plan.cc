// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "planner/completion_queues.h"
#include "planner/refusal.h"
#include "planner/warnings.h"
#include "queue_memory/fit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatCount;
using queue_memory::QueueMemory;

constexpr uint64_t kMostBytes = INT64_MAX;
constexpr size_t kMostExplained = 100;

// a + count x b; false: above kMostBytes.
bool AddTo(uint64_t* a, uint64_t count, uint64_t b) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(count, b, &product) &&
         !__builtin_add_overflow(*a, product, a) && *a <= kMostBytes;
}

bool AddTo(Totals* totals, uint64_t count, const Totals& more) {
  Totals sum = *totals;
  if (!AddTo(&sum.queue_pairs, count, more.queue_pairs) ||
      !AddTo(&sum.queues.container, count, more.queues.container) ||
      !AddTo(&sum.queues.node, count, more.queues.node) ||
      !AddTo(&sum.context, count, more.context) ||
      !AddTo(&sum.textbook, count, more.textbook))
    return false;
  // So that container + node + context is safe wherever it is added.
  uint64_t all = sum.queues.container;
  if (!AddTo(&all, 1, sum.queues.node) || !AddTo(&all, 1, sum.context))
    return false;
  *totals = sum;
  return true;
}

Totals TotalsOf(const QueueMemory& memory) {
  return {.queues = memory.total(), .context = memory.context.total()};
}

class Planner {
 public:
  Planner(const Workload& workload, const Device& device)
      : workload_(workload), outstanding_(workload.completion_queues.size()) {
    plan_.device = device;
    plan_.pods_per_node = workload.pods_per_node;
    plan_.groups.reserve(workload.groups.size());
  }

  absl::StatusOr<Plan> Make() {
    for (const SharedReceiveQueues& queues : workload_.shared_receive_queues)
      PURSER_RETURN_IF_ERROR(PlanShared(queues));
    for (size_t i = 0; i < workload_.groups.size(); ++i)
      PURSER_RETURN_IF_ERROR(PlanGroup(i));
    for (size_t i = 0; i < workload_.completion_queues.size(); ++i)
      PURSER_RETURN_IF_ERROR(PlanCompletionQueues(i));
    CheckCount();
    PURSER_RETURN_IF_ERROR(
        Add(&plan_.node, workload_.pods_per_node, plan_.pod,
            fmt::format("{} pods", workload_.pods_per_node)));
    // One without a name is no class.
    if (plan_.classes.size() == 1 && plan_.classes[0].name.empty())
      plan_.classes.clear();
    AddWarnings(workload_, &plan_);
    return std::move(plan_);
  }

 private:
  absl::Status Add(Totals* totals, uint64_t count, const Totals& more,
                   const std::string& where) {
    if (AddTo(totals, count, more)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{}: together with what is before it this takes more than "
                    "2^63-1 bytes: lower the count or the depths",
                    where));
  }

  absl::Status AddToPod(Totals* all, uint64_t count, const Totals& each,
                        const std::string& where) {
    PURSER_RETURN_IF_ERROR(Add(all, count, each, where));
    return Add(&plan_.pod, 1, *all, where);
  }

  void Note(const QueueMemory& memory) {
    plan_.exactness = std::max(plan_.exactness, memory.exactness);
  }

  absl::Status PlanShared(const SharedReceiveQueues& queues) {
    QueuesPlan planned{
        .each = queue_memory::SharedReceiveQueueMemory(
            plan_.device.provider, plan_.device.limits, queues.request),
        .count = queues.count,
        .entries = queues.request.max_wr};
    absl::Status status;
    if (planned.each.refusal) {
      plan_.refusals.push_back(
          RefusalOf(workload_, queues, plan_.device, planned.each.refusal));
    } else {
      Note(planned.each);
      Totals each = TotalsOf(planned.each);
      each.textbook =
          queue_memory::TextbookBytes({.max_recv_wr = queues.request.max_wr,
                                       .max_recv_sge = queues.request.max_sge});
      status = AddToPod(&planned.all, queues.count, each,
                        Where(workload_, queues.mark, queues.name));
    }
    plan_.shared_receive_queues.push_back(planned);
    return status;
  }

  absl::Status PlanGroup(size_t index) {
    const Group& group = workload_.groups[index];
    GroupPlan& planned = plan_.groups.emplace_back();
    if (group.completion_queues.has_value()) {
      planned.each = queue_memory::QueuePairMemory(
          plan_.device.provider, plan_.device.limits, group.request);
    } else {
      const auto both = queue_memory::QueuePairWithCompletionQueueMemory(
          plan_.device.provider, plan_.device.limits, group.request,
          queue_memory::CompletionQueueSize::kHeadroom);
      planned.each = both.memory;
      planned.cqe = both.cqe;
    }
    if (planned.each.refusal) {
      Refuse(index, planned.each.refusal);
      return absl::OkStatus();
    }
    Note(planned.each);
    Totals each = TotalsOf(planned.each);
    each.queue_pairs = 1;
    each.textbook = queue_memory::TextbookBytes(group.request);
    if (!AddTo(&planned.all, group.count, each) ||
        !AddTo(&plan_.pod, 1, planned.all))
      return Add(&plan_.pod, group.count, each, WhereGroup(workload_, index));
    CountCompletions(group, planned.each);
    AddToClass(group, planned.all);
    return absl::OkStatus();
  }

  // All limits of the first groups; further ones are not read by anybody.
  void Refuse(size_t index, const queue_memory::Refusal& first) {
    std::vector<queue_memory::Refusal> refusals = {first};
    if (plan_.refusals.size() < kMostExplained)
      refusals =
          AllRefusals(plan_.device, workload_.groups[index].request, first).all;
    for (const queue_memory::Refusal& refusal : refusals)
      plan_.refusals.push_back(
          RefusalOf(workload_, index, plan_.device, refusal));
  }

  // A pod's sum does not overflow, so neither does one of its classes.
  void AddToClass(const Group& group, const Totals& all) {
    const auto [place, added] =
        classes_.try_emplace(group.class_name, plan_.classes.size());
    if (added) plan_.classes.push_back({.name = group.class_name});
    (void)AddTo(&plan_.classes[place->second].pod, 1, all);
  }

  // Requests that complete in shared queues, those of a shared receive queue
  // once.
  void CountCompletions(const Group& group, const QueueMemory& each) {
    if (!group.completion_queues.has_value()) return;
    Outstanding* outstanding = &outstanding_[*group.completion_queues];
    Add(outstanding, group.count, OutstandingOf(group.request, each));
    const auto shared = group.shared_receive_queues;
    if (!shared.has_value() ||
        !seen_.emplace(*group.completion_queues, *shared).second)
      return;
    const QueuesPlan& queues = plan_.shared_receive_queues[*shared];
    Add(outstanding, queues.count,
        {queues.entries, queues.each.shared_receive_ring.slots});
  }
  static void Add(Outstanding* sum, uint64_t count, const Outstanding& each) {
    if (!AddTo(&sum->asked, count, each.asked)) sum->asked = kMostBytes;
    if (!AddTo(&sum->held, count, each.held)) sum->held = kMostBytes;
  }

  absl::Status PlanCompletionQueues(size_t index) {
    const CompletionQueues& queues = workload_.completion_queues[index];
    QueuesPlan planned =
        SizeCompletionQueues(plan_.device, queues, outstanding_[index]);
    absl::Status status;
    if (planned.each.refusal) {
      plan_.refusals.push_back(
          RefusalOf(workload_, queues, plan_.device, planned.each.refusal));
    } else {
      Note(planned.each);
      status = AddToPod(&planned.all, planned.count, TotalsOf(planned.each),
                        Where(workload_, queues.mark, queues.name));
      WarnIfSmall(queues, planned);
    }
    plan_.completion_queues.push_back(planned);
    return status;
  }

  void WarnIfSmall(const CompletionQueues& queues, const QueuesPlan& planned) {
    if (planned.room() >= planned.held) return;
    plan_.warnings.push_back(fmt::format(
        "completion queue {}: {} x {} entries for {} requests that can be "
        "outstanding: it can overrun; {}",
        queues.name, FormatCount(planned.count), FormatCount(planned.entries),
        FormatCount(planned.held), HowToHold(plan_.device, planned)));
  }

  void CheckCount() {
    const Device& device = plan_.device;
    const uint64_t most = device.counts.max_qp;
    if (most == 0 || plan_.pod.queue_pairs <= most) return;
    // What is only usual is a warning.
    if (!device.opened && device.told_counts.max_qp == 0) return;
    plan_.refusals.push_back(
        {.text = fmt::format("{} queue pairs are more than the {} that {} has",
                             FormatCount(plan_.pod.queue_pairs),
                             FormatCount(most), device.name)});
  }

  const Workload& workload_;
  Plan plan_;
  std::map<std::string_view, size_t> classes_;  // indexes into plan_.classes
  std::vector<Outstanding> outstanding_;        // by completion queue
  // Shared receive queues that are counted, by completion queue.
  std::set<std::pair<size_t, size_t>> seen_;
};

}  // namespace

uint64_t Plan::units() const { return Mebibytes(pod.queues.total()); }

bool Plan::complete() const {
  const auto accepted = [](const auto& planned) {
    return !planned.each.refusal;
  };
  return std::all_of(groups.begin(), groups.end(), accepted) &&
         std::all_of(completion_queues.begin(), completion_queues.end(),
                     accepted) &&
         std::all_of(shared_receive_queues.begin(), shared_receive_queues.end(),
                     accepted);
}

absl::StatusOr<Plan> MakePlan(const Workload& workload, const Device& device) {
  return Planner(workload, device).Make();
}

}  // namespace purser::planner
