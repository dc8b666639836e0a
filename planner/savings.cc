// SPDX-License-Identifier: Apache-2.0
#include "planner/savings.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "queue_memory/cliffs.h"

namespace purser::planner {
namespace {

using queue_memory::Argument;
using queue_memory::QueueMemory;
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
    for (const Argument argument : queue_memory::kArguments)
      Consider(group.name, queue_memory::ArgumentName(argument),
               ValueOf(group.request, argument), cliffs.memory,
               cliffs.of(argument).below, group.count);
    for (const Argument argument : queue_memory::kArguments)
      if (with_same_cost) NoteSameCost(group, argument, cliffs.of(argument));
    const uint64_t saved = Saves(cliffs.memory, cliffs.plain_send_ops);
    if (saved > 0)
      savings_.push_back({.group = group.name,
                          .argument = "send_ops",
                          .from = "what ibv_create_qp implies",
                          .to = "send, write, read alone",
                          .bytes = saved * group.count});
  }

  // What is not asked for at all is not wanted.
  void NoteSameCost(const Group& group, Argument argument,
                    const queue_memory::Plateau& plateau) {
    const uint32_t asked = ValueOf(group.request, argument);
    const bool looked_at = plateau.most != UINT32_MAX;
    if (asked == 0 || !looked_at || plateau.most == asked) return;
    same_cost_.push_back({.group = group.name,
                          .argument = queue_memory::ArgumentName(argument),
                          .asked = asked,
                          .most = plateau.most});
  }

  void LookAtCompletionQueues(size_t index) {
    const QueuesPlan& queues = plan_.completion_queues[index];
    // Sized by need: less would overrun.
    if (workload_.completion_queues[index].cqe == 0 || queues.each.refusal)
      return;
    const auto plateau = queue_memory::CompletionQueuePlateau(
        plan_.device.provider, plan_.device.limits, queues.entries);
    Consider(workload_.completion_queues[index].name, "cqe", queues.entries,
             queues.each, plateau.below, queues.count);
  }

  void LookAtShared(size_t index) {
    const QueuesPlan& queues = plan_.shared_receive_queues[index];
    if (queues.each.refusal) return;
    const auto plateau = queue_memory::SharedReceiveQueuePlateau(
        plan_.device.provider, plan_.device.limits,
        workload_.shared_receive_queues[index].request);
    Consider(workload_.shared_receive_queues[index].name, "srq max_wr",
             queues.entries, queues.each, plateau.below, queues.count);
  }

  void Consider(const std::string& name, std::string argument, uint32_t value,
                const QueueMemory& memory, const Step& below, uint32_t count) {
    const uint64_t saved = Saves(memory, below);
    if (saved == 0 ||
        !IsCliff(value, below.value, saved, memory.total().total()))
      return;
    savings_.push_back({.group = name,
                        .argument = std::move(argument),
                        .from = std::to_string(value),
                        .to = std::to_string(below.value),
                        .bytes = saved * count});
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
