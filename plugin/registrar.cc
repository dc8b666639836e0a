// SPDX-License-Identifier: Apache-2.0
#include "plugin/registrar.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/logging.h"
#include "base/status_macros.h"
#include "base/unix_socket.h"
#include "plugin/live_endpoints.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

using std::chrono::steady_clock;

constexpr const char* kKubeletSocket = "/kubelet.sock";

std::string RootDirHint(const std::string& directory) {
  return fmt::format(
      "is the kubelet running, and is {} its --root-dir? If not, set "
      "--kubelet-root-dir (and, in a container, mount it). Kubelets up to 1.37 "
      "keep device-plugins in /var/lib/kubelet whatever their --root-dir",
      std::filesystem::path(directory).parent_path().string());
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && std::filesystem::is_directory(path, ignored);
}

}  // namespace

Registrar::Registrar(RegistrarOptions options, const Servers& servers,
                     std::shared_ptr<Wakeup> wakeup)
    : options_(std::move(options)),
      wakeup_(std::move(wakeup)),
      client_(options_.device_plugins_dir + kKubeletSocket),
      way_(options_.mode == RegistrationMode::kPluginsRegistry
               ? RegistrationWay::kPluginsRegistry
               : RegistrationWay::kKubeletSocket) {
  for (const std::shared_ptr<ResourceServer>& server : servers)
    registrations_.push_back(
        std::make_unique<Registration>(options_, server, client_));
}

Registrar::~Registrar() { Stop(); }

absl::Status Registrar::Prepare() {
  absl::Status why_not;
  const World world = Look(&why_not).value_or(
      World{.way = way(), .directory = options_.device_plugins_dir});
  for (const std::unique_ptr<Registration>& registration : registrations_) {
    PURSER_RETURN_IF_ERROR(registration->CheckPeers(world));
    // In plugins_registry the kubelet calls at once: that waits for Start().
    if (world.way == RegistrationWay::kPluginsRegistry) continue;
    const absl::Status status = registration->Bind(world);
    // Where there is no directory the thread says so, and waits.
    if (!absl::IsNotFound(status)) PURSER_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

void Registrar::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void Registrar::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  client_.Cancel();
  wakeup_->Notify();
  thread_.join();
}

void Registrar::SetServers(Servers servers) {
  {
    std::lock_guard lock(mutex_);
    wanted_ = std::move(servers);
  }
  wakeup_->Notify();
}

void Registrar::AdoptServers() {
  std::optional<Servers> wanted;
  {
    std::lock_guard lock(mutex_);
    wanted.swap(wanted_);
  }
  if (!wanted) return;
  std::vector<std::unique_ptr<Registration>> made;
  for (const std::shared_ptr<ResourceServer>& server : *wanted) {
    const bool known = std::any_of(
        registrations_.begin(), registrations_.end(),
        [&](const auto& one) { return &one->server() == server.get(); });
    if (!known)
      made.push_back(std::make_unique<Registration>(options_, server, client_));
  }
  auto is_wanted = [&](const std::unique_ptr<Registration>& one) {
    return std::any_of(wanted->begin(), wanted->end(), [&](const auto& server) {
      return server.get() == &one->server();
    });
  };
  std::vector<std::unique_ptr<Registration>> left_out;
  {
    std::lock_guard lock(mutex_);
    const auto end = std::stable_partition(registrations_.begin(),
                                           registrations_.end(), is_wanted);
    std::move(end, registrations_.end(), std::back_inserter(left_out));
    registrations_.erase(end, registrations_.end());
    std::move(made.begin(), made.end(), std::back_inserter(registrations_));
  }
  // Which closes their sockets; the kubelet drops the resources in its time.
  for (const std::unique_ptr<Registration>& registration : left_out)
    registration->Release();
}

std::vector<Registrar::ResourceState> Registrar::States() const {
  std::vector<ResourceState> states;
  std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Registration>& registration : registrations_)
    states.push_back(registration->state());
  return states;
}

RegistrationWay Registrar::way() const {
  std::lock_guard lock(mutex_);
  return way_;
}

void Registrar::Run(std::stop_token stop) {
  Take(way(), nullptr);
  while (!stop.stop_requested()) {
    watch_->Arm();
    AdoptServers();
    const TimePoint again = ReconcileAll();
    if (!stop.stop_requested()) watch_->Wait(*wakeup_, again);
  }
}

Registrar::TimePoint Registrar::ReconcileAll() {
  TimePoint again = ChooseWay();
  absl::Status why_not;
  const std::optional<World> world = Look(&why_not);
  if (!world || !world->why_not.ok()) {
    const absl::Status& reason = world ? world->why_not : why_not;
    again = std::min(again, KubeletAbsent(reason, !world.has_value()));
  } else {
    kubelet_absent_since_.reset();
    absence_logged_ = false;
  }
  for (const std::unique_ptr<Registration>& registration : registrations_) {
    if (world) {
      again = std::min(again, registration->Reconcile(*world));
    } else {
      registration->NotReady(why_not);
    }
  }
  return again;
}

std::vector<LiveEndpoint> Registrar::Others() const {
  std::vector<LiveEndpoint> others;
  for (const std::string& directory :
       {options_.device_plugins_dir, options_.plugins_registry_dir}) {
    if (!IsDirectory(directory)) continue;
    const auto live = FindLiveEndpoints(directory, options_.identity);
    if (live.ok()) others.insert(others.end(), live->begin(), live->end());
  }
  return others;
}

absl::Status Registrar::CheckPeers(
    const std::vector<std::string>& resources) const {
  if (resources.empty()) return absl::OkStatus();
  const std::vector<LiveEndpoint> others = Others();
  for (const std::string& resource : resources)
    PURSER_RETURN_IF_ERROR(
        Peers(resource, options_.identity).Look(others, steady_clock::now()));
  return absl::OkStatus();
}

std::optional<Registrar::World> Registrar::Look(absl::Status* why_not) const {
  World world{.way = way()};
  const bool by_socket = world.way == RegistrationWay::kKubeletSocket;
  world.directory =
      by_socket ? options_.device_plugins_dir : options_.plugins_registry_dir;
  if (!IsDirectory(world.directory)) {
    *why_not = absl::NotFoundError(fmt::format("there is no directory {}: {}",
                                               world.directory,
                                               RootDirHint(world.directory)));
    return std::nullopt;
  }
  world.others = Others();
  if (!by_socket) return world;
  const absl::StatusOr<std::optional<FileId>> kubelet = client_.Incarnation();
  if (kubelet.ok()) world.kubelet_socket = *kubelet;
  if (!kubelet.ok()) {
    world.why_not = kubelet.status();
  } else if (!kubelet->has_value()) {
    world.why_not = absl::NotFoundError(
        fmt::format("there is no kubelet.sock in {}: {}", world.directory,
                    RootDirHint(world.directory)));
  }
  return world;
}

// Without the directory nothing will come of waiting; without the socket the
// kubelet may just be restarting.
Registrar::TimePoint Registrar::KubeletAbsent(const absl::Status& reason,
                                              bool hopeless) {
  const TimePoint now = steady_clock::now();
  if (!kubelet_absent_since_) {
    kubelet_absent_since_ = now;
    base::LogInfo("the kubelet is not there",
                  {{"device_plugins_dir", options_.device_plugins_dir}});
  }
  const TimePoint error_at = *kubelet_absent_since_ + options_.kubelet_absence;
  if (!absence_logged_ && (hopeless || now >= error_at)) {
    absence_logged_ = true;
    base::LogError("no resource can be advertised; waiting",
                   {{"reason", reason}});
  }
  return absence_logged_ ? now + options_.check_interval : error_at;
}

void Registrar::Take(RegistrationWay way, const char* why) {
  const std::string& directory = way == RegistrationWay::kKubeletSocket
                                     ? options_.device_plugins_dir
                                     : options_.plugins_registry_dir;
  watch_ = std::make_unique<DirectoryWatch>(directory, options_.poll_interval);
  watch_->Arm();
  misgivings_since_.reset();
  if (why == nullptr) return;
  // Closed before the other way is opened: never both.
  for (const std::unique_ptr<Registration>& registration : registrations_)
    registration->Release();
  std::lock_guard lock(mutex_);
  way_ = way;
  base::LogInfo("registering in another way",
                {{"registration", RegistrationWayName(way)}, {"why", why}});
}

}  // namespace purser::plugin
