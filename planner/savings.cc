// SPDX-License-Identifier: Apache-2.0
#include "planner/savings.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/group_change.h"
#include "queue_memory/cliffs.h"
#include "queue_memory/fit.h"

namespace purser::planner {
namespace {

using queue_memory::Argument;
using queue_memory::Step;

constexpr size_t kMostLookedAt = 1000;
constexpr double kLeastShare = 0.05;

// Whether giving up `from - to` is little for what it saves: halving a depth
// for half the memory is no find.
bool IsCliff(uint32_t from, uint32_t to, uint64_t saved, uint64_t total) {
  const double saved_share =
      static_cast<double>(saved) / static_cast<double>(total);
  return saved_share >= kLeastShare &&
         saved_share > static_cast<double>(from - to) / from;
}

class Finder {
 public:
  Finder(const Workload& workload, const Plan& plan)
      : workload_(workload), plan_(plan) {}

  Neighbours Find(size_t most) {
    const std::vector<size_t> largest = Largest();
    for (size_t i = 0; i < largest.size(); ++i)
      LookAtGroup(largest[i], i < most);
    for (size_t i = 0; i < Few(plan_.completion_queues.size()); ++i)
      LookAtCompletionQueues(i);
    for (size_t i = 0; i < Few(plan_.shared_receive_queues.size()); ++i)
      LookAtShared(i);
    std::stable_sort(
        savings_.begin(), savings_.end(),
        [](const Saving& a, const Saving& b) { return a.bytes > b.bytes; });
    if (savings_.size() > most) savings_.resize(most);
    return {std::move(savings_), std::move(same_cost_)};
  }

 private:
  static size_t Few(size_t count) { return std::min(count, kMostLookedAt); }

  std::vector<size_t> Largest() const {
    std::vector<size_t> order(plan_.groups.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t count = Few(order.size());
    std::partial_sort(order.begin(),
                      order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](size_t a, size_t b) {
                        return plan_.groups[a].all.queues.total() >
                               plan_.groups[b].all.queues.total();
                      });
    order.resize(count);
    return order;
  }

  void LookAtGroup(size_t index, bool with_same_cost) {
    const Group& group = workload_.groups[index];
    if (plan_.groups[index].each.refusal) return;
    const queue_memory::Cliffs cliffs = queue_memory::QueuePairCliffs(
        plan_.device.provider, plan_.device.limits, group.request,
        group.completion_queues.has_value()
            ? queue_memory::Scope::kQueuePair
            : queue_memory::Scope::kWithCompletionQueue);
    const GroupChange change(workload_, plan_, index);
    for (const Argument argument : queue_memory::kArguments) {
      const Step& below = cliffs.of(argument).below;
      if (below.exists)
        ConsiderGroup(change, argument, below.value,
                      cliffs.memory.total().total());
      if (with_same_cost)
        NoteSameCost(change, argument, cliffs.of(argument).most);
    }
    ConsiderSendOps(change, cliffs.plain_send_ops.exists);
  }

  void ConsiderGroup(const GroupChange& change, Argument argument,
                     uint32_t less, uint64_t each) {
    const Group& group = change.group();
    const uint32_t asked = ValueOf(group.request, argument);
    const uint64_t saved = change.Saves(With(group.request, argument, less));
    if (saved > 0 && IsCliff(asked, less, saved / group.count, each))
      Add(group.name, queue_memory::ArgumentName(argument), asked, less, saved);
  }

  void ConsiderSendOps(const GroupChange& change, bool smaller) {
    if (!smaller) return;
    queue_memory::QueuePairRequest plain = change.group().request;
    plain.send_ops = queue_memory::kSendOpsPlain;
    const uint64_t saved = change.Saves(plain);
    if (saved > 0)
      savings_.push_back({.group = change.group().name,
                          .argument = "send_ops",
                          .from = "what ibv_create_qp implies",
                          .to = "send, write, read alone",
                          .bytes = saved});
  }

  // What is not asked for at all is not wanted. `plateau`: where the queue pair
  // costs the same, with its completion queue where that is its own.
  void NoteSameCost(const GroupChange& change, Argument argument,
                    uint32_t plateau) {
    const Group& group = change.group();
    const uint32_t asked = ValueOf(group.request, argument);
    const bool looked_at = plateau != UINT32_MAX;
    if (asked == 0 || !looked_at || plateau == asked) return;
    const uint32_t most =
        queue_memory::LargestThatFits(plateau, [&](uint32_t value) {
          return value <= asked ||
                 change.CostsNoMore(With(group.request, argument, value));
        });
    if (most > asked)
      same_cost_.push_back({.group = group.name,
                            .argument = queue_memory::ArgumentName(argument),
                            .asked = asked,
                            .most = most});
  }

  void LookAtCompletionQueues(size_t index) {
    const QueuesPlan& queues = plan_.completion_queues[index];
    // Sized by need: less would overrun.
    if (workload_.completion_queues[index].cqe == 0 || queues.each.refusal)
      return;
    const auto plateau = queue_memory::CompletionQueuePlateau(
        plan_.device.provider, plan_.device.limits, queues.entries);
    if (uint64_t{plateau.below.value} * queues.count < queues.needed()) return;
    ConsiderQueues(workload_.completion_queues[index].name, "cqe", queues,
                   plateau.below);
  }

  void LookAtShared(size_t index) {
    const QueuesPlan& queues = plan_.shared_receive_queues[index];
    if (queues.each.refusal) return;
    const auto plateau = queue_memory::SharedReceiveQueuePlateau(
        plan_.device.provider, plan_.device.limits,
        workload_.shared_receive_queues[index].request);
    ConsiderQueues(workload_.shared_receive_queues[index].name, "srq max_wr",
                   queues, plateau.below);
  }

  void ConsiderQueues(const std::string& name, const char* argument,
                      const QueuesPlan& queues, const Step& below) {
    const uint64_t saved = queue_memory::Saves(queues.each, below);
    if (saved > 0 && IsCliff(queues.entries, below.value, saved,
                             queues.each.total().total()))
      Add(name, argument, queues.entries, below.value, saved * queues.count);
  }

  void Add(const std::string& name, const char* argument, uint32_t from,
           uint32_t to, uint64_t bytes) {
    savings_.push_back({.group = name,
                        .argument = argument,
                        .from = std::to_string(from),
                        .to = std::to_string(to),
                        .bytes = bytes});
  }

  const Workload& workload_;
  const Plan& plan_;
  std::vector<Saving> savings_;
  std::vector<SameCost> same_cost_;
};

}  // namespace

Neighbours FindNeighbours(const Workload& workload, const Plan& plan,
                          size_t most) {
  return Finder(workload, plan).Find(most);
}

}  // namespace purser::planner
