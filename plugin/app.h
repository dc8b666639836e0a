// SPDX-License-Identifier: Apache-2.0
//
// The device plugin: the one place where its parts are wired.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/http_server.h"
#include "node_view/live_view.h"
#include "plugin/cdi_specs.h"
#include "plugin/config/config.h"
#include "plugin/config_file.h"
#include "plugin/config_status.h"
#include "plugin/events/refresh_schedule.h"
#include "plugin/held_units.h"
#include "plugin/inventory.h"
#include "plugin/metrics.h"
#include "plugin/namespace_mode.h"
#include "plugin/node_events.h"
#include "plugin/registrar.h"
#include "plugin/served_resources.h"
#include "plugin/wakeup.h"
#include "rdma/discovery.h"

namespace purser::plugin {

class App {
 public:
  // Scans, binds the sockets (unless the kubelet's directory is missing) and
  // starts all threads. Signals must be blocked before. `file`: where `config`
  // comes from, if it may change. InvalidArgument: the configuration does not
  // fit this node.
  static absl::StatusOr<std::unique_ptr<App>> Create(
      Config config, std::string version,
      std::unique_ptr<ConfigFile> file = nullptr);
  ~App();

  // Refreshes whenever an event, a look, the timer or SIGHUP asks for it, and
  // takes the configuration that the file has, until SIGTERM or SIGINT.
  void Run();
  // Takes the file's configuration into use, if it has another one; reads it if
  // an event or the time asks for it, or `anyway`. One that is not valid, or
  // does not fit this node, changes nothing; the latter is tried again after
  // each scan of a timer or an event.
  void LookAtConfig(bool anyway = false);
  // The one refresh, whatever the cause: scans once, and tells the kubelet what
  // changed.
  enum class Depth { kGlance, kAll };
  void Rescan(RefreshCause cause = RefreshCause::kSignal,
              Depth depth = Depth::kAll);
  // Within 2 s. May be called again.
  void Stop();

  int metrics_port() const { return http_->port(); }

 private:
  App(Config config, std::shared_ptr<Wakeup> wakeup,
      std::unique_ptr<ConfigFile> file);
  absl::Status Start(const std::string& version);
  // `pending`: keys of the file that wait for the next start.
  absl::Status Serve(Config config, std::set<std::string> pending = {});
  // Whether the resources fit what this node has and serves.
  absl::Status Check(const std::vector<std::unique_ptr<Resource>>& resources,
                     const InventoryOptions& options) const;
  void LogWhatIsCut(const Snapshot& snapshot);
  absl::Status TakeIntoUse();
  void TryAgain();
  void Refuse(const absl::Status& why);
  // Tells the kubelet of the devices that were found last.
  void TellDevices();
  // False: to stop.
  bool TakeSignals();
  void DoWhatIsDue();

  Config config_;                           // main thread
  const std::unique_ptr<ConfigFile> file_;  // main thread; may be null
  struct Wanted {
    Config config;
    std::set<std::string> pending;  // keys that wait for the next start
  };
  std::optional<Wanted> wanted_;  // main thread; did not fit this node
  const std::shared_ptr<ConfigStatus> config_status_;  // -> http_
  // Each is used by those below it, and stopped after them.
  base::FileDescriptor signals_;
  NodeEvents events_;                       // -> schedule_, metrics_
  CountByCause<kRefreshCauses> refreshes_;  // -> metrics_
  RefreshSchedule schedule_;                // main thread
  const rdma::Discovery discovery_;
  std::string fingerprint_;  // the main thread's: sysfs before the last scan
  std::map<std::string, absl::Status> cut_;  // the main thread's; by resource
  const AskHeldUnits held_;                  // main thread; -> inventory_, cdi_
  QueuePairLimits limits_;
  NamespaceMode namespaces_;  // main thread -> metrics_
  Inventory inventory_;       // scanned here -> served_, metrics_
  // Null where it is not wanted.
  const std::shared_ptr<CdiSpecs> cdi_;             // -> served_, http_
  const std::shared_ptr<Wakeup> wakeup_;            // -> registrar_
  ServedResources served_;                          // streams -> wakeup_
  std::unique_ptr<Registrar> registrar_;            // -> kubelet
  std::shared_ptr<PluginMetrics> metrics_;          // -> http_
  std::unique_ptr<node_view::LiveView> node_view_;  // -> http_
  std::unique_ptr<base::HttpServer> http_;
};

}  // namespace purser::plugin
