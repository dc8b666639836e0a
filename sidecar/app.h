// SPDX-License-Identifier: Apache-2.0
//
// The sidecar, wired: the one place where its parts meet.
//
//   clients ─▶ gRPC server ─▶ Service ─▶ Broker ─▶ Admission ─▶ PodLedger
//   (unix socket)                          ├─▶ QueuePairs ─▶ Device ─▶ Verbs
//                                          └─▶ Regions      ▲
//   cgroup, meminfo, PSI ─▶ LimitsWatch ───────────────┘
//   Prometheus ─▶ HTTP server ─▶ Metrics, which reads all of them at a scrape
//
// Owned by the main thread. Create() returns a sidecar that serves; when it
// fails, nothing is left behind but the ledger's file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/http_server.h"
#include "grpcpp/server.h"
#include "ledger/ledger.h"
#include "rdma/verbs.h"
#include "sidecar/admission.h"
#include "sidecar/broker.h"
#include "sidecar/budget_inputs.h"
#include "sidecar/config.h"
#include "sidecar/counters.h"
#include "sidecar/device.h"
#include "sidecar/limits_watch.h"
#include "sidecar/metrics.h"
#include "sidecar/pod_ledger.h"
#include "sidecar/service.h"

namespace purser::sidecar {

class App {
 public:
  // InvalidArgument: it was told nonsense (config, environment). Anything else:
  // something is missing or failed. `verbs` outlives the App.
  static absl::StatusOr<std::unique_ptr<App>> Create(
      Config config, const Environment& environment, rdma::Verbs& verbs);
  ~App();

  // Serves until SIGTERM or SIGINT, which base::BlockSignals() blocked.
  void Run();
  // In reverse order of the start: attached clients are told, calls in flight
  // get half a second, the socket goes, then every queue pair and region is
  // destroyed. Idempotent.
  void Stop();

  int metrics_port() const { return http_server_->port(); }

 private:
  explicit App(Config config);
  absl::Status OpenDevices(rdma::Verbs& verbs);
  absl::StatusOr<Budget> ReadBudget(const Environment& environment) const;
  absl::Status SetBudget(const Environment& environment);
  void FollowLimits(const Environment& environment);
  absl::Status ServeClients();
  absl::Status ServeMetrics();

  const Config config_;
  Counters counters_;
  std::unique_ptr<PodLedger> ledger_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::optional<Admission> admission_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<LimitsWatch> limits_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<base::HttpServer> http_server_;
};

}  // namespace purser::sidecar
