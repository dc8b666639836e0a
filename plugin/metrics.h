// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>

#include <string>
#include <vector>

#include "plugin/events/event_sources.h"
#include "plugin/events/refresh_cause.h"
#include "plugin/inventory.h"
#include "plugin/namespace_mode.h"
#include "plugin/registrar.h"
#include "plugin/served_resources.h"

namespace purser::plugin {

// How changes of the node come to be known.
struct RefreshMetrics {
  const EventSources& sources;
  const CountByCause<kRefreshCauses>& refreshes;
  const NamespaceMode& namespaces;
};

// The node's metrics, read from the parts at scrape time, on the HTTP server's
// threads. Owned by App, whose parts outlive the HTTP server.
class PluginMetrics : public prometheus::Collectable {
 public:
  PluginMetrics(std::string version, const Inventory& inventory,
                const ServedResources& served, const Registrar& registrar,
                RefreshMetrics refresh);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  void CollectResources(std::vector<prometheus::MetricFamily>& out) const;
  void CollectRegistrations(std::vector<prometheus::MetricFamily>& out) const;
  void CollectDevices(std::vector<prometheus::MetricFamily>& out) const;
  void CollectRefreshes(std::vector<prometheus::MetricFamily>& out) const;

  const std::string version_;
  const Inventory& inventory_;
  const ServedResources& served_;
  const Registrar& registrar_;
  const RefreshMetrics refresh_;
};

}  // namespace purser::plugin
