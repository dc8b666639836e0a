// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_metrics.h"

#include <array>
#include <map>
#include <string>
#include <utility>

#include "rdma/queue_pair_states.h"
#include "sidecar/metric_families.h"

namespace purser::sidecar {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr char kContainer[] = "container";
constexpr char kNode[] = "node";

// The label `queue`. The provider's arrays beside the rings are overhead.
constexpr std::array kQueues = {"send", "receive", "completion",
                                "shared_receive", "overhead"};

// Of one device and class.
struct Totals {
  std::array<queue_memory::Charge, kQueues.size()> memory;
  std::map<std::pair<ibv_qp_type, ibv_qp_state>, uint64_t> queue_pairs;

  void Add(const queue_memory::QueueMemory& of) {
    memory[0] += of.send;
    memory[1] += of.receive;
    memory[2] += of.completion;
    memory[3] += of.shared_receive;
    memory[4] += of.arrays + of.overhead;
  }
  void Add(const BrokeredQueuePair& queue_pair) {
    Add(queue_pair.facts().shape->memory);
    ++queue_pairs[{queue_pair.facts().shape->type, queue_pair.KnownState()}];
  }
};
using TotalsByClass = std::map<std::pair<const Device*, std::string>, Totals>;

TotalsByClass Sum(
    Broker& broker,
    const std::vector<std::shared_ptr<BrokeredQueuePair>>& queue_pairs) {
  TotalsByClass totals;
  // What a device without queue pairs shows.
  std::map<std::string, const Device*> by_name;
  for (const Device* device : broker.devices()) {
    by_name[device->name()] = device;
    Totals& zeros = totals[{device, kDefaultClass}];
    for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; ++state)
      zeros.queue_pairs[{IBV_QPT_RC, static_cast<ibv_qp_state>(state)}] = 0;
  }
  for (const auto& queue_pair : queue_pairs)
    totals[{queue_pair->facts().device, queue_pair->facts().owner->class_name}]
        .Add(*queue_pair);
  for (const auto& set : broker.queue_pairs().completion_queues())
    for (const SharedCompletionQueueState& state : set->State())
      totals[{by_name[set->facts().device->name],
              set->facts().owner->class_name}]
          .Add(state.memory);
  for (const auto& queue : broker.shared_receive_queues().All())
    totals[{queue->facts().device, queue->facts().owner->class_name}].Add(
        queue->facts().memory);
  return totals;
}

MetricFamily MemoryFamily(const TotalsByClass& totals) {
  Family<4> family(MetricType::Gauge, "purser_queue_memory_bytes",
                   "Memory of the queues that the sidecar holds, by what it is "
                   "for and by who is charged: the container's cgroup, or the "
                   "node's kernel memory, which no cgroup sees.",
                   {"device", "queue", "charged_to", "class"});
  for (const auto& [key, of] : totals) {
    const auto& [device, class_name] = key;
    for (size_t i = 0; i < kQueues.size(); ++i) {
      family.Add({device->name(), kQueues[i], kContainer, class_name},
                 static_cast<double>(of.memory[i].container));
      family.Add({device->name(), kQueues[i], kNode, class_name},
                 static_cast<double>(of.memory[i].node));
    }
  }
  return family.Take();
}

MetricFamily QueuePairsFamily(const TotalsByClass& totals) {
  Family<4> family(MetricType::Gauge, "purser_queue_pairs",
                   "Queue pairs that the sidecar holds, by state.",
                   {"device", "type", "state", "class"});
  for (const auto& [key, of] : totals) {
    const auto& [device, class_name] = key;
    for (const auto& [type_and_state, count] : of.queue_pairs)
      family.Add({device->name(), rdma::QueuePairTypeName(type_and_state.first),
                  rdma::StateName(type_and_state.second), class_name},
                 static_cast<double>(count));
  }
  return family.Take();
}

uint64_t Backlog(
    const std::vector<std::shared_ptr<BrokeredQueuePair>>& queue_pairs) {
  uint64_t backlog = 0;
  for (const auto& queue_pair : queue_pairs)
    backlog += queue_pair->work_queue().outstanding_sends();
  return backlog;
}

void AddObjects(Broker& broker, std::vector<MetricFamily>& families) {
  uint64_t shared = 0;
  for (const auto& set : broker.queue_pairs().completion_queues())
    shared += set->State().size();
  families.push_back(
      Gauge("purser_shared_completion_queues",
            "Completion queues that several queue pairs use, or may.", shared));
  families.push_back(Gauge("purser_shared_receive_queues",
                           "Shared receive queues.",
                           broker.shared_receive_queues().All().size()));
  Family<2> undestroyed(
      MetricType::Gauge, "purser_undestroyed_objects",
      "Objects that the device refused to destroy. They stay charged and are "
      "tried again every second.",
      {"device", "object"});
  Undestroyed::Counts counts = broker.undestroyed().counts();
  for (const Device* device : broker.devices())
    counts.emplace(std::pair(device->name(), std::string("qp")), 0);
  for (const auto& [what, count] : counts)
    undestroyed.Add({what.first, what.second}, static_cast<double>(count));
  families.push_back(undestroyed.Take());
}

}  // namespace

void AddQueues(Broker& broker, std::vector<MetricFamily>& families) {
  const auto queue_pairs = broker.queue_pairs().All();
  const TotalsByClass totals = Sum(broker, queue_pairs);
  families.push_back(MemoryFamily(totals));
  families.push_back(QueuePairsFamily(totals));
  families.push_back(
      Gauge("purser_completion_backlog",
            "Sends that were posted and whose completions were not yet polled.",
            Backlog(queue_pairs)));
  AddObjects(broker, families);
}

}  // namespace purser::sidecar
