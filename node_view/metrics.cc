// SPDX-License-Identifier: Apache-2.0
#include "node_view/metrics.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "queue_memory/queue_memory.h"

namespace purser::node_view {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using Labels = std::vector<ClientMetric::Label>;

class Gauge {
 public:
  Gauge(const char* name, const char* help) {
    family_.name = name;
    family_.help = help;
    family_.type = prometheus::MetricType::Gauge;
  }
  void Add(Labels labels, double value) {
    ClientMetric& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    metric.gauge.value = value;
  }
  void Add(Labels labels, uint64_t value) {
    Add(std::move(labels), static_cast<double>(value));
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

Labels OwnerLabels(const ContainerName& owner) {
  return {{"namespace", owner.namespace_name},
          {"pod", owner.pod},
          {"container", owner.container}};
}

Labels LabelsOf(const Holding& holding,
                std::initializer_list<ClientMetric::Label> more = {}) {
  Labels labels = OwnerLabels(holding.owner);
  labels.insert(labels.begin(), {"device", holding.device});
  labels.insert(labels.end(), more);
  return labels;
}

void AddAmount(const Holding& holding, const char* charged_to, Amount amount,
               Gauge& bytes) {
  for (const auto& [value, exactness] :
       {std::pair(amount.exact, "exact"),
        std::pair(amount.estimated, "estimated")}) {
    if (value > 0)
      bytes.Add(LabelsOf(holding, {{"charged_to", charged_to},
                                   {"exactness", exactness}}),
                value);
  }
}

void CollectHoldings(const View& view, std::vector<MetricFamily>& out) {
  Gauge bytes("purser_node_queue_memory_bytes",
              "Queue memory that is held, as the kernel tells or, marked, as "
              "it is estimated.");
  Gauge queue_pairs("purser_node_queue_pairs",
                    "Queue pairs that the kernel lists.");
  Gauge completion_queues("purser_node_completion_queues",
                          "Completion queues that the kernel lists.");
  Gauge srqs("purser_node_shared_receive_queues",
             "Shared receive queues that the kernel lists.");
  for (const Holding& holding : view.holdings) {
    AddAmount(holding, "container", holding.bytes.container, bytes);
    AddAmount(holding, "node", holding.bytes.node, bytes);
    for (const auto& [type_and_state, count] : holding.queue_pairs)
      queue_pairs.Add(LabelsOf(holding, {{"type", type_and_state.first},
                                         {"state", type_and_state.second}}),
                      count);
    if (holding.completion_queues > 0)
      completion_queues.Add(LabelsOf(holding), holding.completion_queues);
    if (holding.shared_receive_queues > 0)
      srqs.Add(LabelsOf(holding), holding.shared_receive_queues);
  }
  for (Gauge* gauge : {&bytes, &queue_pairs, &completion_queues, &srqs})
    out.push_back(gauge->Take());
}

void CollectAllocated(const View& view, std::vector<MetricFamily>& out) {
  if (!view.allocations_known) return;
  Gauge units("purser_node_allocated_units",
              "Units that containers were allotted, as the kubelet has it.");
  Gauge allocated("purser_device_plugin_allocated",
                  "Units that all containers of the node were allotted.");
  std::map<std::string, uint64_t> sums;
  for (const Allocation& allocation : view.allocations) {
    Labels labels = OwnerLabels(allocation.holder);
    labels.insert(labels.begin(), {"resource", allocation.resource});
    units.Add(std::move(labels), allocation.units);
    sums[allocation.resource] += allocation.units;
  }
  for (const auto& [resource, sum] : sums)
    allocated.Add({{"resource", resource}}, sum);
  out.push_back(units.Take());
  out.push_back(allocated.Take());
}

void CollectNode(const View& view, std::vector<MetricFamily>& out) {
  Gauge undeclared("purser_node_undeclared_queue_memory_bytes",
                   "Queue memory beyond what its holders were allotted. Absent "
                   "while that cannot be told.");
  if (view.undeclared_bytes) {
    for (const auto& [device, bytes] : *view.undeclared_bytes)
      undeclared.Add({{"device", device}}, bytes);
  }
  Gauge rings("purser_node_kernel_rings_bytes",
              "Kernel memory that a driver has taken for rings, whoever holds "
              "them.");
  Gauge unattributed("purser_node_unattributed_rings_bytes",
                     "Of it: what no process was seen to hold. The kernel's "
                     "own, or hidden.");
  for (const auto& [provider, total] : view.kernel_rings) {
    const Labels labels = {{"driver", queue_memory::ProviderName(provider)}};
    rings.Add(labels, total.bytes);
    unattributed.Add(labels, total.unattributed());
  }
  for (Gauge* gauge : {&undeclared, &rings, &unattributed})
    out.push_back(gauge->Take());
}

void CollectReserve(const View& view, std::vector<MetricFamily>& out) {
  if (!view.reserved_memory_bytes) return;
  Gauge reserved("purser_node_reserved_memory_bytes",
                 "Memory of the node that the kubelet keeps from pods.");
  reserved.Add({}, *view.reserved_memory_bytes);
  Gauge unreserved("purser_node_unreserved_queue_memory_bytes",
                   "Advertised queue memory that no pod's limit covers, beyond "
                   "the node's reserved memory.");
  unreserved.Add({}, view.unreserved_bytes());
  out.push_back(reserved.Take());
  out.push_back(unreserved.Take());
}

void CollectReading(const View& view, std::vector<MetricFamily>& out) {
  Gauge sources("purser_node_view_source_up",
                "1 if the node view uses the source; else 0 and the reason.");
  for (const SourceState& source : view.sources)
    sources.Add({{"source", source.name}, {"reason", source.reason}},
                source.reason.empty() ? 1.0 : 0.0);
  using Seconds = std::chrono::duration<double>;
  Gauge read_at("purser_node_view_read_timestamp_seconds",
                "When the node view was read, since the epoch.");
  read_at.Add({}, Seconds(view.read_at.time_since_epoch()).count());
  Gauge took("purser_node_view_read_seconds", "How long the reading took.");
  took.Add({}, Seconds(view.took).count());
  for (Gauge* gauge : {&sources, &read_at, &took}) out.push_back(gauge->Take());
}

}  // namespace

std::vector<MetricFamily> MetricsOf(const View& view) {
  std::vector<MetricFamily> out;
  CollectHoldings(view, out);
  CollectAllocated(view, out);
  CollectNode(view, out);
  CollectReserve(view, out);
  CollectReading(view, out);
  return out;
}

std::vector<MetricFamily> ViewMetrics::Collect() const {
  const std::shared_ptr<const View> view = live_view_.Fresh(patience_);
  return view == nullptr ? std::vector<MetricFamily>() : MetricsOf(*view);
}

}  // namespace purser::node_view
