// SPDX-License-Identifier: Apache-2.0
//
// The device plugin: the one place where its parts are wired.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/http_server.h"
#include "node_view/live_view.h"
#include "plugin/cdi_specs.h"
#include "plugin/config/config.h"
#include "plugin/events/refresh_schedule.h"
#include "plugin/inventory.h"
#include "plugin/metrics.h"
#include "plugin/namespace_mode.h"
#include "plugin/node_events.h"
#include "plugin/registrar.h"
#include "plugin/resource.h"
#include "plugin/resource_server.h"
#include "plugin/wakeup.h"
#include "rdma/discovery.h"

namespace purser::plugin {

class App {
 public:
  // Scans, binds the sockets (unless the kubelet's directory is missing) and
  // starts all threads. Signals must be blocked before. InvalidArgument: the
  // configuration does not fit this node.
  static absl::StatusOr<std::unique_ptr<App>> Create(Config config,
                                                     std::string version);
  ~App();

  // Refreshes whenever an event, a look, the timer or SIGHUP asks for it, until
  // SIGTERM or SIGINT.
  void Run();
  // The one refresh, whatever the cause: scans once, and tells the kubelet what
  // changed.
  void Rescan(RefreshCause cause = RefreshCause::kSignal);
  // Within 2 s. May be called again.
  void Stop();

  int metrics_port() const { return http_->port(); }

 private:
  App(Config config, std::shared_ptr<Wakeup> wakeup);
  absl::Status Start(const std::string& version);
  // False: to stop.
  bool TakeSignals();
  void DoWhatIsDue();
  base::HttpResponse Readiness() const;

  const Config config_;
  // Each is used by those below it, and stopped after them.
  base::FileDescriptor signals_;
  NodeEvents events_;                       // -> schedule_, metrics_
  CountByCause<kRefreshCauses> refreshes_;  // -> metrics_
  RefreshSchedule schedule_;                // main thread
  const rdma::Discovery discovery_;
  std::string fingerprint_;  // the main thread's: sysfs before the last scan
  QueuePairLimits limits_;
  NamespaceMode namespaces_;  // main thread -> metrics_
  Inventory inventory_;       // scanned here -> servers_, metrics_
  // Null where it is not wanted.
  const std::unique_ptr<CdiSpecs> cdi_;                   // -> resources_
  std::vector<std::unique_ptr<Resource>> resources_;      // -> servers_
  const std::shared_ptr<Wakeup> wakeup_;                  // -> registrar_
  std::vector<std::unique_ptr<ResourceServer>> servers_;  // streams -> wakeup_
  std::unique_ptr<Registrar> registrar_;                  // -> kubelet
  std::shared_ptr<PluginMetrics> metrics_;                // -> http_
  std::unique_ptr<node_view::LiveView> node_view_;        // -> http_
  std::unique_ptr<base::HttpServer> http_;
};

// The resources that the configuration asks for on a node with that much
// memory; shared with --check-config.
absl::StatusOr<std::vector<std::unique_ptr<Resource>>> MakeResources(
    const Config& config, const CdiSpecs* cdi = nullptr);

}  // namespace purser::plugin
