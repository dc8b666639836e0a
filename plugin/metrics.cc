// SPDX-License-Identifier: Apache-2.0
#include "plugin/metrics.h"

#include <prometheus/metric_family.h>

#include <initializer_list>
#include <utility>

namespace purser::plugin {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Family {
 public:
  Family(MetricType type, const char* name, const char* help) {
    family_.name = name;
    family_.help = help;
    family_.type = type;
  }
  void Add(std::initializer_list<ClientMetric::Label> labels, double value) {
    ClientMetric metric;
    metric.label = labels;
    if (family_.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    family_.metric.push_back(std::move(metric));
  }
  void Add(std::initializer_list<ClientMetric::Label> labels,
           ClientMetric metric) {
    metric.label = labels;
    family_.metric.push_back(std::move(metric));
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

}  // namespace

PluginMetrics::PluginMetrics(std::string version, const Inventory& inventory,
                             const ServedResources& served,
                             const Registrar& registrar, RefreshMetrics refresh)
    : version_(std::move(version)),
      inventory_(inventory),
      served_(served),
      registrar_(registrar),
      refresh_(refresh) {}

std::vector<MetricFamily> PluginMetrics::Collect() const {
  std::vector<MetricFamily> out;
  Family build(MetricType::Gauge, "purser_device_plugin_build_info",
               "Always 1; the version as a label.");
  build.Add({{"version", version_}}, 1);
  out.push_back(build.Take());
  CollectResources(out);
  CollectRegistrations(out);
  CollectDevices(out);
  CollectRefreshes(out);
  return out;
}

void PluginMetrics::CollectRefreshes(std::vector<MetricFamily>& out) const {
  Family up(MetricType::Gauge, "purser_device_plugin_event_source_up",
            "1 if the source tells of changes; else 0 and the reason, and they "
            "are found by looking.");
  Family events(MetricType::Counter, "purser_device_plugin_events_total",
                "Events received that may be about the node's devices.");
  Family refreshes(MetricType::Counter, "purser_device_plugin_refreshes_total",
                   "Times that the node's devices were read anew.");
  for (const EventSourceState& state : refresh_.sources.States()) {
    const char* source = RefreshCauseName(state.cause);
    up.Add({{"source", source}, {"reason", state.reason}},
           state.reason.empty() ? 1 : 0);
    events.Add({{"source", source}}, static_cast<double>(state.events));
  }
  for (size_t i = 0; i < kRefreshCauses; ++i) {
    const auto cause = static_cast<RefreshCause>(i);
    refreshes.Add({{"cause", RefreshCauseName(cause)}},
                  static_cast<double>(refresh_.refreshes.Of(cause)));
  }
  Family exclusive(MetricType::Gauge,
                   "purser_device_plugin_rdma_netns_exclusive",
                   "1 if each RDMA device belongs to one network namespace. "
                   "Absent where the kernel does not tell.");
  if (const auto mode = refresh_.namespaces.known())
    exclusive.Add({}, *mode == rdma::NamespaceMode::kExclusive ? 1 : 0);
  for (Family* family : {&up, &events, &refreshes, &exclusive})
    out.push_back(family->Take());
}

void PluginMetrics::CollectResources(std::vector<MetricFamily>& out) const {
  Family capacity(MetricType::Gauge, "purser_device_plugin_capacity",
                  "Units advertised to the kubelet.");
  Family allocatable(MetricType::Gauge, "purser_device_plugin_allocatable",
                     "Units advertised to the kubelet as healthy.");
  Family streams(MetricType::Gauge, "purser_device_plugin_streams",
                 "ListAndWatch streams that the kubelet has open.");
  Family allocations(MetricType::Counter,
                     "purser_device_plugin_allocations_total",
                     "Allocate calls answered (what containers still hold is "
                     "the kubelet's to tell).");
  Family opened(MetricType::Counter,
                "purser_device_plugin_streams_opened_total",
                "ListAndWatch streams that the kubelet has opened.");
  Family lists(MetricType::Counter, "purser_device_plugin_lists_sent_total",
               "Lists of units sent to the kubelet: one for each stream, and "
               "one for each change.");
  Family durations(MetricType::Histogram,
                   "purser_device_plugin_allocate_duration_seconds",
                   "Time that an Allocate call took.");
  for (const auto& server : served_.servers()) {
    const std::string& name = server->resource_name();
    // No figure at all while the devices are not known: 0 would be a claim.
    if (const auto advertisement = server->streams().advertisement()) {
      capacity.Add({{"resource", name}}, advertisement->capacity());
      allocatable.Add({{"resource", name}}, advertisement->allocatable());
    }
    streams.Add({{"resource", name}}, server->streams().count());
    opened.Add({{"resource", name}},
               static_cast<double>(server->streams().opened()));
    lists.Add({{"resource", name}},
              static_cast<double>(server->streams().sent()));
    const DevicePluginService& service = server->service();
    durations.Add({{"resource", name}}, service.allocate_durations());
    allocations.Add({{"resource", name}, {"result", "granted"}},
                    static_cast<double>(service.allocations()));
    allocations.Add({{"resource", name}, {"result", "refused"}},
                    static_cast<double>(service.refused_allocations()));
  }
  for (Family* family : {&capacity, &allocatable, &streams, &opened, &lists,
                         &allocations, &durations})
    out.push_back(family->Take());
}

void PluginMetrics::CollectRegistrations(std::vector<MetricFamily>& out) const {
  Family registrations(MetricType::Counter,
                       "purser_device_plugin_registrations_total",
                       "Registrations with the kubelet.");
  Family ready(MetricType::Gauge, "purser_device_plugin_ready",
               "1 if the resource is registered and the kubelet listens.");
  for (const Registrar::ResourceState& state : registrar_.States()) {
    registrations.Add({{"resource", state.resource}, {"result", "success"}},
                      static_cast<double>(state.registered));
    registrations.Add({{"resource", state.resource}, {"result", "error"}},
                      static_cast<double>(state.failed));
    ready.Add({{"resource", state.resource}}, state.readiness.ok() ? 1 : 0);
  }
  Family way(MetricType::Gauge, "purser_device_plugin_registration_info",
             "Always 1; the way to the kubelet as a label.");
  way.Add({{"way", RegistrationWayName(registrar_.way())}}, 1);
  out.push_back(way.Take());
  out.push_back(registrations.Take());
  out.push_back(ready.Take());
}

void PluginMetrics::CollectDevices(std::vector<MetricFamily>& out) const {
  Family port_up(MetricType::Gauge, "purser_port_up",
                 "1 if the port is ACTIVE and has a physical link.");
  Family healthy(MetricType::Gauge, "purser_device_healthy",
                 "1 if containers can use the device; else 0. The reason, or "
                 "other_netns: a pod has it to itself.");
  Family errors(MetricType::Counter,
                "purser_device_plugin_discovery_errors_total",
                "Scans of sysfs that failed; the last good list stays in use.");
  errors.Add({}, static_cast<double>(inventory_.scan_errors()));
  if (const std::shared_ptr<const Snapshot> snapshot = inventory_.snapshot()) {
    for (const Device& device : snapshot->devices) {
      const bool plain = device.health == DeviceHealth::kHealthy;
      healthy.Add({{"device", device.sysfs.name},
                   {"reason", plain ? "" : DeviceHealthName(device.health)}},
                  device.healthy() ? 1 : 0);
      // Nothing is seen of them.
      if (device.health == DeviceHealth::kOtherNamespace) continue;
      for (const rdma::PortStatus& port : device.sysfs.ports) {
        port_up.Add({{"device", device.sysfs.name},
                     {"port", std::to_string(port.port_num)}},
                    PortIsUp(port) ? 1 : 0);
      }
    }
  }
  Family changes(MetricType::Counter, "purser_port_changes_total",
                 "Changes of a port that were noticed, by what has changed.");
  for (const PortChangeCounts& port : inventory_.port_changes().counts()) {
    for (size_t i = 0; i < kPortTraits; ++i)
      changes.Add({{"device", port.device},
                   {"port", std::to_string(port.port_num)},
                   {"what", PortTraitName(static_cast<PortTrait>(i))}},
                  static_cast<double>(port.counts[i]));
  }
  for (Family* family : {&port_up, &healthy, &errors, &changes})
    out.push_back(family->Take());
}

}  // namespace purser::plugin
