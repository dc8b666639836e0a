// SPDX-License-Identifier: Apache-2.0
#include "plugin/registrar.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/logging.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

using std::chrono::steady_clock;

constexpr const char* kKubeletSocket = "kubelet.sock";

std::string RootDirHint(const std::string& device_plugins_dir) {
  return fmt::format(
      "is the kubelet running, and is {} its --root-dir? If not, set "
      "--kubelet-root-dir (and, in a container, mount it)",
      std::filesystem::path(device_plugins_dir).parent_path().string());
}

}  // namespace

Registrar::Registrar(RegistrarOptions options,
                     std::vector<ResourceServer*> servers,
                     std::shared_ptr<Wakeup> wakeup)
    : options_(std::move(options)),
      wakeup_(std::move(wakeup)),
      watch_(options_.device_plugins_dir, options_.poll_interval),
      client_(options_.device_plugins_dir + "/" + kKubeletSocket) {
  for (ResourceServer* server : servers) {
    entries_.push_back({.server = server,
                        .retry = options_.first_retry,
                        .stream_timeout = options_.stream_timeout,
                        .bind_retry = options_.first_retry});
    states_.push_back({.resource = server->resource_name(),
                       .readiness = absl::UnavailableError("starting")});
  }
}

Registrar::~Registrar() { Stop(); }

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

std::vector<Registrar::ResourceState> Registrar::States() const {
  std::lock_guard lock(mutex_);
  return states_;
}

void Registrar::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    watch_.Arm();
    const TimePoint again = ReconcileAll();
    if (!stop.stop_requested()) watch_.Wait(*wakeup_, again);
  }
}

Registrar::TimePoint Registrar::ReconcileAll() {
  const std::string& directory = options_.device_plugins_dir;
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return WaitForKubelet(absl::NotFoundError(fmt::format(
        "there is no directory {}: {}", directory, RootDirHint(directory))));
  }
  const absl::StatusOr<std::optional<FileId>> kubelet =
      IdentifyFile(directory + "/" + kKubeletSocket);
  if (!kubelet.ok()) return WaitForKubelet(kubelet.status());
  if (!kubelet->has_value()) {
    return WaitForKubelet(absl::NotFoundError(
        fmt::format("there is no {} in {}: {}", kKubeletSocket, directory,
                    RootDirHint(directory))));
  }
  kubelet_absent_since_.reset();
  absence_logged_ = false;
  TimePoint again = steady_clock::now() + options_.check_interval;
  for (size_t i = 0; i < entries_.size(); ++i)
    again = std::min(again, ReconcileEntry(i, **kubelet));
  return again;
}

Registrar::TimePoint Registrar::WaitForKubelet(const absl::Status& reason) {
  const TimePoint now = steady_clock::now();
  if (!kubelet_absent_since_) {
    kubelet_absent_since_ = now;
    base::LogInfo("the kubelet is not there",
                  {{"device_plugins_dir", options_.device_plugins_dir}});
  }
  const TimePoint error_at = *kubelet_absent_since_ + options_.kubelet_absence;
  std::error_code ignored;
  const bool directory_exists =
      std::filesystem::is_directory(options_.device_plugins_dir, ignored);
  TimePoint again = now + options_.check_interval;
  // Without the directory nothing will come of waiting; without the socket the
  // kubelet may just be restarting.
  if (!absence_logged_ && (!directory_exists || now >= error_at)) {
    absence_logged_ = true;
    base::LogError("no resource can be advertised; waiting",
                   {{"reason", reason}});
  }
  if (!absence_logged_) again = std::min(again, error_at);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (directory_exists) again = std::min(again, ReconcileSocket(i));
    const bool own_trouble = directory_exists && !entries_[i].bound;
    if (!own_trouble) SetReadiness(i, reason);
  }
  return again;
}

Registrar::TimePoint Registrar::ReconcileSocket(size_t index) {
  Entry& entry = entries_[index];
  const TimePoint now = steady_clock::now();
  const absl::StatusOr<bool> intact = entry.server->SocketIntact();
  entry.bound = intact.ok() && *intact;
  if (entry.bound) return now + options_.check_interval;
  if (now < entry.next_bind) return entry.next_bind;
  const absl::Status status =
      intact.ok() ? entry.server->Bind() : intact.status();
  entry.bound = status.ok();
  if (entry.bound) {
    entry.bind_retry = options_.first_retry;
    return now + options_.check_interval;
  }
  if (SetReadiness(index, status)) {
    base::LogError(
        "cannot serve a resource; trying again",
        {{"resource", entry.server->resource_name()}, {"error", status}});
  }
  entry.next_bind = After(entry.bind_retry);
  return entry.next_bind;
}

Registrar::TimePoint Registrar::ReconcileEntry(size_t index,
                                               const FileId& kubelet_socket) {
  Entry& entry = entries_[index];
  const TimePoint bind_again = ReconcileSocket(index);
  if (!entry.bound || !entry.server->socket_id()) return bind_again;
  const TimePoint now = steady_clock::now();
  if (!entry.server->streams().advertisement()) {
    SetReadiness(index, absl::UnavailableError(
                            "the node's RDMA devices are not known yet"));
    return now + options_.check_interval;
  }
  const Incarnations incarnations{kubelet_socket, *entry.server->socket_id()};
  // An answer that came too late was an answer, if the kubelet listens now.
  if (entry.answer_lost && entry.attempted == incarnations &&
      !entry.server->streams().none_since())
    entry.registered = incarnations;
  if (entry.registered == incarnations) {
    const TimePoint again = ReconcileStream(index);
    if (entry.registered) return again;
  }
  if (entry.attempted != incarnations) {
    entry.attempted = incarnations;
    entry.retry = options_.first_retry;
    entry.next_attempt = now;
  }
  if (now < entry.next_attempt) return entry.next_attempt;
  return Register(index, incarnations);
}

// Takes back `registered` if the kubelet has not listened for too long: it
// never dials again by itself, and only a registration makes it.
Registrar::TimePoint Registrar::ReconcileStream(size_t index) {
  Entry& entry = entries_[index];
  const TimePoint now = steady_clock::now();
  const std::string& resource = entry.server->resource_name();
  const std::optional<TimePoint> none_since =
      entry.server->streams().none_since();
  if (!none_since) {
    entry.stream_timeout = options_.stream_timeout;
    if (SetReadiness(index, absl::OkStatus()))
      base::LogInfo("ready: the kubelet listens", {{"resource", resource}});
    return now + options_.check_interval;
  }
  SetReadiness(index, absl::UnavailableError(
                          "registered, but the kubelet has no ListAndWatch "
                          "open"));
  const TimePoint due =
      std::max(*none_since, entry.registered_at) + entry.stream_timeout;
  if (now < due) return due;
  base::LogWarn(
      "the kubelet has no ListAndWatch open: registering again",
      {{"resource", resource}, {"after_ms", entry.stream_timeout.count()}});
  entry.registered.reset();
  entry.stream_timeout =
      std::min(entry.stream_timeout * 2, options_.longest_stream_timeout);
  return now;
}

Registrar::TimePoint Registrar::Register(size_t index,
                                         const Incarnations& incarnations) {
  Entry& entry = entries_[index];
  const absl::Status status =
      client_.Register(entry.server->resource_name(),
                       entry.server->socket_name(), options_.register_deadline);
  {
    std::lock_guard lock(mutex_);
    ++(status.ok() ? states_[index].registered : states_[index].failed);
  }
  entry.answer_lost = absl::IsDeadlineExceeded(status);
  if (!status.ok()) {
    if (!absl::IsCancelled(status) && SetReadiness(index, status)) {
      base::LogWarn(
          "the kubelet did not take the registration; trying again",
          {{"resource", entry.server->resource_name()}, {"error", status}});
    }
    entry.next_attempt = After(entry.retry);
    return entry.next_attempt;
  }
  entry.registered = incarnations;
  entry.registered_at = steady_clock::now();
  entry.retry = options_.first_retry;
  base::LogInfo("registered with the kubelet",
                {{"resource", entry.server->resource_name()}});
  // Looked at again at once: the stream may be open already.
  return entry.registered_at;
}

Registrar::TimePoint Registrar::After(std::chrono::milliseconds& retry) const {
  const TimePoint then = steady_clock::now() + retry;
  retry = std::min(retry * 2, options_.longest_retry);
  return then;
}

bool Registrar::SetReadiness(size_t index, const absl::Status& status) {
  std::lock_guard lock(mutex_);
  absl::Status& readiness = states_[index].readiness;
  if (readiness == status) return false;
  readiness = status;
  return true;
}

}  // namespace purser::plugin
