// SPDX-License-Identifier: Apache-2.0
#include "plugin/app.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/proc.h"
#include "base/signals.h"
#include "base/status_macros.h"
#include "node_view/metrics.h"
#include "plugin/config/capacity.h"
#include "plugin/device_access.h"
#include "plugin/device_resource.h"
#include "plugin/node_view.h"
#include "plugin/pool_resource.h"
#include "plugin/queue_memory_resource.h"
#include "plugin/queue_pair_resource.h"
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

std::string UnhealthyReasons(const Advertisement& advertisement) {
  std::string reasons;
  auto add = [&](const auto& units) {
    if (!units.healthy) reasons += (reasons.empty() ? "" : "; ") + units.reason;
  };
  for (const UnitRange& range : advertisement.ranges) add(range);
  for (const NamedUnit& unit : advertisement.named) add(unit);
  return reasons;
}

// How many units the node has, and why not more.
std::string UnitsText(const Advertisement& advertisement,
                      const std::string& note) {
  const uint32_t capacity = advertisement.capacity();
  const uint32_t allocatable = advertisement.allocatable();
  if (allocatable < capacity)
    return fmt::format("{} of {} units healthy: {}", allocatable, capacity,
                       UnhealthyReasons(advertisement));
  return fmt::format("{} units{}{}", capacity, note.empty() ? "" : ": ", note);
}

absl::StatusOr<uint32_t> MemoryUnits(const Config& config) {
  PURSER_ASSIGN_OR_RETURN(const base::NodeMemory memory,
                          base::ProcReader(config.proc_root).Memory());
  absl::StatusOr<uint32_t> units =
      QueueMemoryUnits(config.queue_memory, memory.total_bytes);
  if (units.ok()) return units;
  return absl::Status(units.status().code(),
                      fmt::format("resources.queueMemory: {}",
                                  std::string(units.status().message())));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Resource>>> MakeResources(
    const Config& config, const CdiSpecs* cdi) {
  std::vector<std::unique_ptr<Resource>> resources;
  for (const PoolConfig& pool : config.pools) {
    if (!pool.advertised) continue;
    if (pool.unit == PoolUnit::kShare) {
      resources.push_back(std::make_unique<PoolResource>(pool, cdi));
    } else {
      resources.push_back(std::make_unique<DeviceResource>(pool, cdi));
    }
  }
  if (const QueueMemoryConfig& memory = config.queue_memory; memory.enabled) {
    PURSER_ASSIGN_OR_RETURN(const uint32_t units, MemoryUnits(config));
    resources.push_back(
        std::make_unique<QueueMemoryResource>(units, memory.unit_mib));
  }
  if (config.queue_pairs.enabled)
    resources.push_back(
        std::make_unique<QueuePairResource>(config.queue_pairs));
  return resources;
}

absl::StatusOr<std::unique_ptr<App>> App::Create(Config config,
                                                 std::string version) {
  PURSER_ASSIGN_OR_RETURN(std::shared_ptr<Wakeup> wakeup, Wakeup::Create());
  std::unique_ptr<App> app(new App(std::move(config), std::move(wakeup)));
  PURSER_RETURN_IF_ERROR(app->Start(version));
  return app;
}

App::App(Config config, std::shared_ptr<Wakeup> wakeup)
    : config_(std::move(config)),
      schedule_(TimesOf(config_), RefreshSchedule::Clock::now()),
      discovery_(config_.sysfs_root, config_.dev_root),
      limits_(rdma::LibibverbsVerbs()),
      namespaces_([] { return rdma::OpenRdmaNetlink(kNetlinkTimeout); }),
      inventory_(discovery_, config_.dev_root, config_.proc_root,
                 InventoryOptions(config_), &limits_),
      cdi_(config_.cdi ? std::make_unique<CdiSpecs>(config_.cdi_dir,
                                                    config_.installation)
                       : nullptr),
      wakeup_(std::move(wakeup)) {}

App::~App() { Stop(); }

absl::Status App::Start(const std::string& version) {
  base::LogInfo("purser-device-plugin starts",
                {{"version", version},
                 {"device_plugins_dir", config_.device_plugins_dir()},
                 {"sysfs_root", config_.sysfs_root}});
  PURSER_ASSIGN_OR_RETURN(signals_, base::OpenSignals());
  events_.Open(config_);
  PURSER_ASSIGN_OR_RETURN(resources_, MakeResources(config_, cdi_.get()));
  const Identity identity = Identity::Now(config_.installation);
  std::vector<ResourceServer*> served;
  for (const std::unique_ptr<Resource>& resource : resources_) {
    servers_.push_back(std::make_unique<ResourceServer>(
        *resource, identity, [wakeup = wakeup_] { wakeup->Notify(); }));
    served.push_back(servers_.back().get());
  }
  // An unreadable sysfs is logged there, and looked at again.
  Rescan(RefreshCause::kStart);
  if (const auto snapshot = inventory_.snapshot())
    PURSER_RETURN_IF_ERROR(CheckOverlaps(config_.overlap, snapshot->overlaps));
  RegistrarOptions options;
  options.device_plugins_dir = config_.device_plugins_dir();
  options.plugins_registry_dir = config_.plugins_registry_dir();
  options.mode = config_.registration;
  options.identity = identity;
  registrar_ = std::make_unique<Registrar>(options, served, wakeup_);
  PURSER_RETURN_IF_ERROR(registrar_->Prepare());
  metrics_ = std::make_shared<PluginMetrics>(
      version, inventory_,
      std::vector<const ResourceServer*>(served.begin(), served.end()),
      *registrar_, RefreshMetrics{events_.sources(), refreshes_, namespaces_});
  std::vector<std::shared_ptr<prometheus::Collectable>> metrics = {metrics_};
  if (config_.node_view.enabled) {
    node_view_ = MakeNodeView(
        config_, inventory_,
        std::vector<const ResourceServer*>(served.begin(), served.end()));
    node_view_->Start();
    metrics.push_back(std::make_shared<node_view::ViewMetrics>(*node_view_));
  }
  PURSER_ASSIGN_OR_RETURN(
      http_,
      base::HttpServer::Create(
          config_.metrics_address,
          {{"/metrics", base::MetricsHandler(metrics)},
           {"/healthz", [] { return base::HttpResponse{.body = "ok\n"}; }},
           {"/readyz", [this] { return Readiness(); }}}));
  base::LogInfo("metrics", {{"address", config_.metrics_address},
                            {"port", http_->port()}});
  registrar_->Start();
  return absl::OkStatus();
}

void App::Run() {
  while (TakeSignals()) {
    DoWhatIsDue();
    for (const RefreshCause cause :
         events_.Wait(signals_.get(), schedule_.next()))
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
    base::LogInfo("SIGHUP: scanning anew");
    Rescan(RefreshCause::kSignal);
  }
  return true;
}

void App::DoWhatIsDue() {
  const auto due = schedule_.Take(RefreshSchedule::Clock::now());
  if (!due) return;
  if (due->step == RefreshSchedule::Step::kScan ||
      discovery_.Fingerprint() != fingerprint_) {
    Rescan(due->cause);
  } else {
    schedule_.Looked(RefreshSchedule::Clock::now());
  }
}

void App::Rescan(RefreshCause cause) {
  const auto began = RefreshSchedule::Clock::now();
  const bool had_none = inventory_.snapshot() == nullptr;
  refreshes_.Add(cause);
  // Before the scan: what changes during it is seen at the next look.
  fingerprint_ = discovery_.Fingerprint();
  events_.CloseGone();
  const bool scanned =
      inventory_
          .Scan({.now = began,
                 .exclusive_namespaces = namespaces_.IsExclusive(config_.pools),
                 .fatal = events_.fatal()})
          .ok();
  // After a failure the next good scan tells it.
  schedule_.HoldBackUntil(scanned ? inventory_.held_back_until()
                                  : std::nullopt);
  schedule_.Scanned(began, RefreshSchedule::Clock::now());
  if (!scanned) return;
  // First what names stand for, then who may be given them.
  if (cdi_ != nullptr)
    cdi_->Refresh(PoolCdiSpecs(config_, *inventory_.snapshot()));
  for (const std::unique_ptr<ResourceServer>& server : servers_)
    server->Update(inventory_.snapshot());
  // Resources are registered only once their units are known.
  if (had_none) wakeup_->Notify();
  events_.Follow(*inventory_.snapshot(), RefreshSchedule::Clock::now());
}

void App::Stop() {
  if (registrar_ != nullptr) registrar_->Stop();
  http_.reset();
  if (node_view_ != nullptr) node_view_->Stop();
  const auto deadline = std::chrono::system_clock::now() + kServerStop;
  for (auto server = servers_.rbegin(); server != servers_.rend(); ++server)
    (*server)->Stop(deadline);
  if (cdi_ != nullptr) cdi_->Remove();
}

base::HttpResponse App::Readiness() const {
  base::HttpResponse response;
  const std::shared_ptr<const Snapshot> snapshot = inventory_.snapshot();
  const std::vector<Registrar::ResourceState> states = registrar_->States();
  for (size_t i = 0; i < states.size(); ++i) {
    const Registrar::ResourceState& state = states[i];
    response.body += state.resource + ": ";
    const auto advertisement = servers_[i]->streams().advertisement();
    if (!state.readiness.ok()) {
      response.code = 503;
      response.body += state.readiness.ToString();
    } else {
      response.body += "ready";
      if (advertisement && snapshot != nullptr)
        response.body +=
            ", " + UnitsText(*advertisement, resources_[i]->Note(*snapshot));
    }
    response.body += '\n';
  }
  return response;
}

}  // namespace purser::plugin
