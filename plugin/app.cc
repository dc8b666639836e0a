// SPDX-License-Identifier: Apache-2.0
#include "plugin/app.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/signals.h"
#include "base/status_macros.h"
#include "node_view/metrics.h"
#include "plugin/device_access.h"
#include "plugin/make_resources.h"
#include "plugin/node_view.h"
#include "plugin/readiness.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// What is left of the 2 s that a stop may take goes to the registrar and HTTP.
constexpr std::chrono::milliseconds kServerStop{1000};

constexpr std::chrono::milliseconds kLook{1000};
constexpr std::chrono::milliseconds kNetlinkTimeout{1000};

RefreshSchedule::Times TimesOf(const Config& config) {
  const std::chrono::milliseconds scan = config.rescan_interval;
  return {.look = scan.count() > 0 ? std::min(kLook, scan) : kLook,
          .scan = scan};
}

// What takes effect at the next start alone (kFixedKeys), or is not in the
// file. Returns the keys that the file would change.
std::set<std::string> KeepWhatIsFixed(const Config& running, Config* next) {
  std::set<std::string> changed;
  auto keep = [&](const char* key, const auto& now, auto* wanted) {
    if (*wanted == now) return;
    changed.insert(key);
    base::LogWarn("a change that takes effect when the plugin is started again",
                  {{"key", key}});
    *wanted = now;
  };
  keep("kubeletRootDir", running.kubelet_root_dir, &next->kubelet_root_dir);
  keep("metricsAddress", running.metrics_address, &next->metrics_address);
  keep("registration", running.registration, &next->registration);
  keep("cdi.enabled", running.cdi, &next->cdi);
  keep("cdi.directory", running.cdi_dir, &next->cdi_dir);
  next->proc_root = running.proc_root;
  return changed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<App>> App::Create(
    Config config, std::string version, std::unique_ptr<ConfigFile> file) {
  PURSER_ASSIGN_OR_RETURN(std::shared_ptr<Wakeup> wakeup, Wakeup::Create());
  std::unique_ptr<App> app(
      new App(std::move(config), std::move(wakeup), std::move(file)));
  PURSER_RETURN_IF_ERROR(app->Start(version));
  return app;
}

App::App(Config config, std::shared_ptr<Wakeup> wakeup,
         std::unique_ptr<ConfigFile> file)
    : config_(std::move(config)),
      file_(std::move(file)),
      config_status_(std::make_shared<ConfigStatus>()),
      schedule_(TimesOf(config_), RefreshSchedule::Clock::now()),
      discovery_(config_.sysfs_root, config_.dev_root),
      held_(HeldUnitsOfKubelet(config_.pod_resources_socket())),
      limits_(rdma::LibibverbsVerbs()),
      namespaces_([] { return rdma::OpenRdmaNetlink(kNetlinkTimeout); }),
      inventory_(discovery_, config_.dev_root, config_.proc_root,
                 InventoryOptions(config_), &limits_, held_),
      cdi_(config_.cdi ? std::make_shared<CdiSpecs>(config_.cdi_dir,
                                                    config_.installation, held_)
                       : nullptr),
      wakeup_(std::move(wakeup)),
      served_(Identity::Now(config_.installation),
              [wakeup = wakeup_] { wakeup->Notify(); }) {}

App::~App() { Stop(); }

absl::Status App::Start(const std::string& version) {
  base::LogInfo("purser-device-plugin starts",
                {{"version", version},
                 {"device_plugins_dir", config_.device_plugins_dir()},
                 {"sysfs_root", config_.sysfs_root}});
  PURSER_ASSIGN_OR_RETURN(signals_, base::OpenSignals());
  events_.Open(config_);
  // An unreadable sysfs is logged there, and looked at again.
  Rescan(RefreshCause::kStart);
  PURSER_RETURN_IF_ERROR(Serve(config_));
  RegistrarOptions options;
  options.device_plugins_dir = config_.device_plugins_dir();
  options.plugins_registry_dir = config_.plugins_registry_dir();
  options.mode = config_.registration;
  options.identity = served_.identity();
  registrar_ = std::make_unique<Registrar>(options, served_.servers(), wakeup_);
  PURSER_RETURN_IF_ERROR(registrar_->Prepare());
  metrics_ = std::make_shared<PluginMetrics>(
      version, inventory_, served_, *registrar_,
      RefreshMetrics{events_.sources(), refreshes_, namespaces_});
  std::vector<std::shared_ptr<prometheus::Collectable>> metrics = {
      metrics_, config_status_};
  if (cdi_ != nullptr) metrics.push_back(cdi_);
  if (config_.node_view.enabled) {
    node_view_ = MakeNodeView(config_, inventory_, served_);
    node_view_->Start();
    metrics.push_back(std::make_shared<node_view::ViewMetrics>(*node_view_));
  }
  PURSER_ASSIGN_OR_RETURN(
      http_,
      base::HttpServer::Create(
          config_.metrics_address,
          {{"/metrics", base::MetricsHandler(metrics)},
           {"/healthz", [] { return base::HttpResponse{.body = "ok\n"}; }},
           {"/readyz", [this] {
              return Readiness(*registrar_, served_, inventory_,
                               *config_status_);
            }}}));
  base::LogInfo("metrics", {{"address", config_.metrics_address},
                            {"port", http_->port()}});
  registrar_->Start();
  return absl::OkStatus();
}

// Either all of it, or nothing.
absl::Status App::Serve(Config config, std::set<std::string> pending) {
  PURSER_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Resource>> resources,
                          MakeResources(config, cdi_.get()));
  InventoryOptions options(config);
  PURSER_RETURN_IF_ERROR(Check(resources, options));
  for (const std::string& warning : config.warnings)
    base::LogWarn("configuration", {{"warning", warning}});
  config_ = std::move(config);
  schedule_.SetTimes(TimesOf(config_));
  inventory_.Configure(std::move(options));
  served_.Replace(std::move(resources));
  TellDevices();
  config_status_->Loaded(std::chrono::system_clock::now(), std::move(pending));
  return absl::OkStatus();
}

absl::Status App::Check(const std::vector<std::unique_ptr<Resource>>& resources,
                        const InventoryOptions& options) const {
  PURSER_ASSIGN_OR_RETURN(const std::shared_ptr<const Snapshot> preview,
                          inventory_.Preview(options));
  std::vector<std::string> added;
  for (const std::unique_ptr<Resource>& resource : resources) {
    const absl::Status fits =
        preview == nullptr ? absl::OkStatus() : resource->Fits(*preview);
    if (absl::IsInvalidArgument(fits))
      return absl::InvalidArgumentError(
          fmt::format("{}: {}", resource->name(), std::string(fits.message())));
    if (served_.Find(resource->name()).server == nullptr)
      added.push_back(resource->name());
  }
  // Before it runs the registrar looks itself.
  return registrar_ == nullptr ? absl::OkStatus()
                               : registrar_->CheckPeers(added);
}

void App::LookAtConfig(bool anyway) {
  if (file_ == nullptr) return;
  std::optional<absl::StatusOr<Config>> change = file_->TakeChange(anyway);
  if (!change) {
    if (anyway) TryAgain();
    return;
  }
  wanted_.reset();
  if (!change->ok()) return Refuse(change->status());
  std::set<std::string> pending = KeepWhatIsFixed(config_, &**change);
  wanted_ = Wanted{**std::move(change), std::move(pending)};
  if (const absl::Status status = TakeIntoUse(); !status.ok()) Refuse(status);
}

// What it did not fit may have changed.
void App::TryAgain() {
  if (!wanted_) return;
  const absl::Status status = TakeIntoUse();
  if (!status.ok() && status.message() != config_status_->state().refusal)
    Refuse(status);
}

absl::Status App::TakeIntoUse() {
  PURSER_RETURN_IF_ERROR(Serve(wanted_->config, wanted_->pending));
  wanted_.reset();
  base::LogInfo("another configuration is in use", {{"file", file_->path()}});
  base::SetLogLevel(config_.log_level);
  Rescan(RefreshCause::kConfig);
  registrar_->SetServers(served_.servers());
  return absl::OkStatus();
}

void App::Refuse(const absl::Status& why) {
  base::LogError(
      "the configuration was changed, but is not valid: the one before stays "
      "in use",
      {{"file", file_->path()}, {"error", why}});
  config_status_->Refused(std::string(why.message()));
}

void App::TellDevices() {
  const std::shared_ptr<const Snapshot> snapshot = inventory_.snapshot();
  if (snapshot == nullptr) return;
  // First what names stand for, then who may be given them.
  if (cdi_ != nullptr) cdi_->Refresh(PoolCdiSpecs(config_, *snapshot));
  served_.Update(snapshot);
  LogWhatIsCut(*snapshot);
}

void App::LogWhatIsCut(const Snapshot& snapshot) {
  std::map<std::string, absl::Status> cut;
  for (const auto& server : served_.servers()) {
    const std::string& name = server->resource_name();
    const ServedResources::View one = served_.Find(name);
    if (one.resource == nullptr) continue;
    absl::Status fits = one.resource->Fits(snapshot);
    if (fits.ok()) continue;
    if (const auto told = cut_.find(name);
        told == cut_.end() || told->second != fits) {
      base::LogWarn("a resource has more units than the kubelet takes: cut",
                    {{"resource", name}, {"reason", fits}});
    }
    cut[name] = std::move(fits);
  }
  cut_ = std::move(cut);
}

void App::Run() {
  while (TakeSignals()) {
    LookAtConfig();
    DoWhatIsDue();
    RefreshSchedule::TimePoint next = schedule_.next();
    if (file_ != nullptr) next = std::min(next, file_->next());
    const int file = file_ == nullptr ? -1 : file_->fd();
    for (const RefreshCause cause : events_.Wait({signals_.get(), file}, next))
      schedule_.OnEvent(cause, RefreshSchedule::Clock::now());
  }
  Stop();
}

bool App::TakeSignals() {
  while (const std::optional<int> signal = base::TakeSignal(signals_)) {
    if (signal == SIGTERM || signal == SIGINT) {
      base::LogInfo("stopping", {{"signal", *signal}});
      return false;
    }
    base::LogInfo("SIGHUP: reading the configuration and scanning anew");
    LookAtConfig(/*anyway=*/true);
    Rescan(RefreshCause::kSignal);
  }
  return true;
}

void App::DoWhatIsDue() {
  const auto due = schedule_.Take(RefreshSchedule::Clock::now());
  if (!due) return;
  if (due->step == RefreshSchedule::Step::kScan) {
    Rescan(due->cause);
    TryAgain();
    return;
  }
  std::string fingerprint = discovery_.Fingerprint();
  if (fingerprint == fingerprint_)
    return schedule_.Looked(RefreshSchedule::Clock::now());
  fingerprint_ = std::move(fingerprint);
  Rescan(due->cause, Depth::kGlance);
}

void App::Rescan(RefreshCause cause, Depth depth) {
  const auto began = RefreshSchedule::Clock::now();
  const bool had_none = inventory_.snapshot() == nullptr;
  refreshes_.Add(cause);
  // Before the scan: what changes during it is seen at the next look. That
  // which led to a glance has it already.
  if (depth == Depth::kAll) fingerprint_ = discovery_.Fingerprint();
  events_.CloseGone();
  const bool scanned =
      inventory_
          .Scan({.now = began,
                 .exclusive_namespaces = namespaces_.IsExclusive(config_.pools),
                 .fatal = events_.fatal(),
                 .quick = depth == Depth::kGlance})
          .ok();
  // After a failure the next good scan tells it.
  schedule_.HoldBackUntil(scanned ? inventory_.held_back_until()
                                  : std::nullopt);
  if (depth == Depth::kGlance) {
    schedule_.Glanced(began);
  } else {
    schedule_.Scanned(began, RefreshSchedule::Clock::now());
  }
  if (!scanned) return;
  TellDevices();
  // Resources are registered only once their units are known.
  if (had_none) wakeup_->Notify();
  events_.Follow(*inventory_.snapshot(), RefreshSchedule::Clock::now());
}

void App::Stop() {
  if (registrar_ != nullptr) registrar_->Stop();
  http_.reset();
  if (node_view_ != nullptr) node_view_->Stop();
  served_.Stop(std::chrono::system_clock::now() + kServerStop);
  if (cdi_ != nullptr) cdi_->Remove();
}

}  // namespace purser::plugin
