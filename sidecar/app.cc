// SPDX-License-Identifier: Apache-2.0
#include "sidecar/app.h"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/logging.h"
#include "base/quantity.h"
#include "base/signals.h"
#include "base/status_macros.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "sidecar/device_choice.h"
#include "sidecar/ledger_metrics.h"
#include "sidecar/shared_volume.h"

namespace purser::sidecar {
namespace {

constexpr std::chrono::milliseconds kCallsInFlight{500};

// What a device answers is never the config's fault.
absl::Status AsRuntimeFailure(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InternalError(status.message());
}

void LogDevice(const Device& device) {
  base::LogInfo("device opened",
                {{"device", device.name()},
                 {"provider", queue_memory::ProviderName(device.provider())},
                 {"port", device.port_num()}});
  if (device.provider() != queue_memory::Provider::kUnknown) return;
  base::LogWarn(
      "no memory rule for this device's provider: its queues are charged by "
      "the textbook sum times a safety factor, mostly too high; what "
      "is left of the budget is an estimate",
      {{"device", device.name()}});
}

}  // namespace

App::App(Config config) : config_(std::move(config)) {}

App::~App() { Stop(); }

absl::StatusOr<std::unique_ptr<App>> App::Create(Config config,
                                                 const Environment& environment,
                                                 rdma::Verbs& verbs) {
  std::unique_ptr<App> app(new App(std::move(config)));
  PURSER_RETURN_IF_ERROR(PrepareSharedVolume(app->config_.shared_volume,
                                             app->config_.SocketPath()));
  PURSER_RETURN_IF_ERROR(AsRuntimeFailure(app->OpenDevices(verbs)));
  PURSER_RETURN_IF_ERROR(app->SetBudget(environment));
  PURSER_RETURN_IF_ERROR(app->ServeClients());
  app->FollowLimits(environment);
  PURSER_RETURN_IF_ERROR(app->ServeMetrics());
  base::LogInfo("serving", {{"socket", app->config_.SocketPath()},
                            {"metrics_port", app->metrics_port()}});
  return app;
}

absl::Status App::OpenDevices(rdma::Verbs& verbs) {
  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          ChooseDevices(config_, verbs));
  for (const std::string& name : names) {
    PURSER_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                            Device::Open(verbs, name,
                                         {.sysfs = config_.sysfs_root,
                                          .dev = config_.dev_root,
                                          .proc = config_.proc_root}));
    LogDevice(*device);
    devices_.push_back(std::move(device));
  }
  return absl::OkStatus();
}

absl::StatusOr<Budget> App::ReadBudget(const Environment& environment) const {
  std::vector<DeviceTraits> traits;
  for (const auto& device : devices_) traits.push_back(device->traits());
  return DetermineBudget(ReadBudgetInputs(config_, environment, traits));
}

absl::Status App::SetBudget(const Environment& environment) {
  PURSER_ASSIGN_OR_RETURN(Budget budget, ReadBudget(environment));
  LogBudget("budget", budget);
  PURSER_ASSIGN_OR_RETURN(ledger_, PodLedger::Open(config_.shared_volume));
  admission_.emplace(ledger_->ledger(), std::move(budget), config_.classes);
  ledger_->Start();
  return absl::OkStatus();
}

void App::FollowLimits(const Environment& environment) {
  limits_ = std::make_unique<LimitsWatch>(
      LimitSources{
          .budget = [this, environment] { return ReadBudget(environment); },
          .container = [this] { return ReadContainerUsage(config_); },
          .node = [this] { return ReadNodeUsage(config_); }},
      *admission_, counters_,
      [this](PressureScope scope, const Pressure& pressure) {
        broker_->PressureChanged(scope, pressure);
      },
      [this] { broker_->GiveBack(); }, config_.limits);
  limits_->Start();
}

absl::Status App::ServeClients() {
  std::vector<Device*> devices;
  for (const auto& device : devices_) devices.push_back(device.get());
  absl::StatusOr<std::unique_ptr<Broker>> broker =
      Broker::Create(std::move(devices), *admission_, counters_,
                     {.max_clients = config_.max_clients,
                      .shared_volume = config_.shared_volume,
                      .proc_root = config_.proc_root});
  if (!broker.ok()) return AsRuntimeFailure(broker.status());
  broker_ = *std::move(broker);
  service_ = std::make_unique<Service>(*broker_, ledger_->ledger(), *admission_,
                                       counters_);

  const std::string socket = config_.SocketPath();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return absl::UnavailableError("gRPC cannot listen on " + socket);
  // The pod's containers run as other users. The volume is the pod's own, so
  // whoever reaches the socket belongs to the pod.
  if (chmod(socket.c_str(), 0666) != 0)
    return absl::ErrnoToStatus(errno, "chmod " + socket);
  return absl::OkStatus();
}

absl::Status App::ServeMetrics() {
  const base::HttpHandler alive = [] {
    return base::HttpResponse{.body = "ok\n"};
  };
  const base::HttpHandler ready = [this]() -> base::HttpResponse {
    const absl::Status status = broker_->Ready();
    if (status.ok()) return {.body = "ok\n"};
    return {.code = 503, .body = std::string(status.message()) + "\n"};
  };
  // Last to start and first to stop: while it answers, clients are served.
  PURSER_ASSIGN_OR_RETURN(
      http_server_,
      base::HttpServer::Create(
          config_.metrics_address,
          {{"/metrics",
            base::MetricsHandler({std::make_shared<Metrics>(
                                      *broker_, ledger_->ledger(), *admission_,
                                      counters_, PURSER_VERSION),
                                  std::make_shared<LedgerMetrics>(*ledger_)})},
           {"/healthz", alive},
           {"/readyz", ready}}));
  return absl::OkStatus();
}

void App::Run() {
  // A SIGHUP that was meant to reload must not cost the pod its queue pairs.
  while (base::WaitForSignal() == SIGHUP)
    base::LogInfo("SIGHUP: nothing to reload; restart to change the config");
  base::LogInfo("stopping");
}

void App::Stop() {
  http_server_.reset();
  if (service_ != nullptr) service_->Stop();
  if (server_ != nullptr)
    server_->Shutdown(std::chrono::system_clock::now() + kCallsInFlight);
  server_.reset();
  service_.reset();
  limits_.reset();
  broker_.reset();
  devices_.clear();
  if (ledger_ != nullptr) ledger_->Stop();
}

}  // namespace purser::sidecar
