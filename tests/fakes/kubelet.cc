// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kubelet.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "spdlog/fmt/fmt.h"

namespace purser::fakes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoint = "kubelet_internal_checkpoint";
constexpr std::chrono::seconds kDialDeadline{10};

// As Kubernetes has it (component-helpers, IsExtendedResourceName), but for the
// letters.
bool IsExtendedResourceName(const std::string& name) {
  const size_t slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string::npos &&
         name.find("kubernetes.io/") == std::string::npos &&
         !name.starts_with("requests.") &&
         std::string("requests.").size() + slash <= 253 &&
         name.size() - slash - 1 <= 63;
}

}  // namespace

class Kubelet::Registration : public v1beta1::Registration::Service {
 public:
  explicit Registration(Kubelet& kubelet) : kubelet_(kubelet) {}
  grpc::Status Register(grpc::ServerContext* /*context*/,
                        const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    return kubelet_.Register(*request);
  }

 private:
  Kubelet& kubelet_;
};

Kubelet::Kubelet(fs::path root_dir, Observer observer, KubeletOptions options)
    : root_dir_(std::move(root_dir)),
      observer_(std::move(observer)),
      options_(options) {}

Kubelet::~Kubelet() { Stop(); }

absl::Status Kubelet::Start() {
  const fs::path directory = device_plugins_dir();
  std::error_code error;
  fs::create_directories(directory, error);
  fs::permissions(directory, fs::perms(0750), error);
  if (error) {
    return absl::InternalError(
        fmt::format("{}: {}", directory.string(), error.message()));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename() != kCheckpoint && !entry.is_directory())
      fs::remove(entry.path(), error);
  }
  std::ofstream(directory / kCheckpoint) << "{}\n";
  {
    std::lock_guard lock(mutex_);
    running_ = true;
    // The checkpoint names the resources; their units come with ListAndWatch.
    for (auto& [name, entry] : entries_) {
      entry.resource.healthy.clear();
      entry.resource.unhealthy.clear();
      Record(name, "restarted");
    }
  }
  if (options_.plugins_registry) {
    fs::create_directories(plugins_registry_dir(), error);
    registry_ = std::make_unique<KubeletRegistry>(
        plugins_registry_dir(), options_.registry_interval,
        options_.device_plugins_from_registry,
        KubeletRegistry::Callbacks{
            .connect =
                [this](const std::string& name, const std::string& path) {
                  return Connect(name, path);
                },
            .disconnect =
                [this](const std::string& name, const std::string& path) {
                  Deregister(name, path);
                }});
  }
  if (!options_.kubelet_socket) return absl::OkStatus();
  registration_ = std::make_unique<Registration>(*this);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_path().string(),
                           grpc::InsecureServerCredentials());
  builder.RegisterService(registration_.get());
  server_ = builder.BuildAndStart();
  std::ofstream(directory / "DEPRECATION")
      << "This socket directory is deprecated.\n";
  if (server_ == nullptr)
    return absl::InternalError("cannot serve " + socket_path().string());
  return absl::OkStatus();
}

void Kubelet::Stop() {
  {
    std::lock_guard lock(mutex_);
    running_ = false;
    changed_.notify_all();
  }
  registry_.reset();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }
  Disconnect();
}

void Kubelet::Crash() {
  Stop();
  const std::string path = socket_path().string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  close(fd);
}

absl::Status Kubelet::Restart() {
  Stop();
  return Start();
}

void Kubelet::Disconnect() {
  std::vector<std::shared_ptr<KubeletEndpoint>> endpoints;
  {
    std::lock_guard lock(mutex_);
    endpoints = std::exchange(gone_, {});
    for (auto& [name, entry] : entries_) {
      endpoints.insert(endpoints.end(), entry.endpoints.begin(),
                       entry.endpoints.end());
      entry.endpoints.clear();
      entry.primary.reset();
      entry.connected_paths.clear();
      entry.never_let_go.clear();
    }
  }
  for (const auto& endpoint : endpoints) endpoint->Stop();
  std::lock_guard lock(mutex_);
  for (auto& [name, entry] : entries_) {
    entry.resource.connected = false;
    entry.resource.plugins = 0;
  }
}

grpc::Status Kubelet::Register(const v1beta1::RegisterRequest& request) {
  const std::string& name = request.resource_name();
  {
    std::unique_lock lock(mutex_);
    ++register_calls_;
    changed_.notify_all();
    const auto begin = std::chrono::steady_clock::now();
    while (running_ && std::chrono::steady_clock::now() < begin + delay_)
      changed_.wait_until(lock, begin + delay_);
    if (!running_)
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "kubelet stops");
    if (refusal_) {
      return grpc::Status(static_cast<grpc::StatusCode>(refusal_->code()),
                          std::string(refusal_->message()));
    }
  }
  if (request.version() != "v1beta1")
    return grpc::Status(grpc::StatusCode::UNKNOWN, "unsupported version");
  if (!IsExtendedResourceName(name))
    return grpc::Status(grpc::StatusCode::UNKNOWN, "invalid resource name");
  const absl::Status status =
      Connect(name, (device_plugins_dir() / request.endpoint()).string());
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

absl::Status Kubelet::Connect(const std::string& name,
                              const std::string& path) {
  absl::StatusOr<std::unique_ptr<KubeletEndpoint>> dialled =
      KubeletEndpoint::Dial(path, kDialDeadline);
  if (!dialled.ok()) {
    return absl::UnknownError("failed to dial device plugin: " +
                              dialled.status().ToString());
  }
  std::shared_ptr<KubeletEndpoint> fresh = *std::move(dialled);
  const absl::StatusOr<Connected> connected = MakePrimary(name, fresh);
  if (!connected.ok()) return connected.status();
  if (connected->stopped != nullptr) connected->stopped->Stop();
  if (!connected->watch) return absl::OkStatus();
  const KubeletEndpoint* from = fresh.get();
  fresh->Watch(
      [this, name, from](const v1beta1::ListAndWatchResponse& list) {
        OnList(name, from, list);
      },
      [this, name, from](const grpc::Status& status) {
        OnEnd(name, from, status);
      });
  return absl::OkStatus();
}

void Kubelet::Record(const std::string& name, const char* what) {
  const Resource& resource = entries_[name].resource;
  history_.push_back({std::chrono::steady_clock::now(), name, what,
                      resource.capacity(), resource.healthy.size()});
  if (observer_) observer_(history_.back());
  changed_.notify_all();
}

std::optional<Kubelet::Resource> Kubelet::resource(
    const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  return found->second.resource;
}

std::vector<KubeletEvent> Kubelet::history() const {
  std::lock_guard lock(mutex_);
  return history_;
}

bool Kubelet::WaitFor(const std::string& name,
                      const std::function<bool(const Resource&)>& condition,
                      std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] {
    const auto found = entries_.find(name);
    return found != entries_.end() && condition(found->second.resource);
  });
}

bool Kubelet::WaitForAllocatable(const std::string& name,
                                 std::chrono::milliseconds timeout) const {
  return WaitFor(
      name, [](const Resource& r) { return r.connected && !r.healthy.empty(); },
      timeout);
}

bool Kubelet::WaitForRegisterCalls(int calls,
                                   std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout,
                           [&] { return register_calls_ >= calls; });
}

void Kubelet::RefuseRegistrations(std::optional<absl::Status> error) {
  std::lock_guard lock(mutex_);
  refusal_ = std::move(error);
}

void Kubelet::DelayRegistrations(std::chrono::milliseconds delay) {
  std::lock_guard lock(mutex_);
  delay_ = delay;
  changed_.notify_all();
}

void Kubelet::IgnoreLists(bool ignore) {
  std::lock_guard lock(mutex_);
  ignore_lists_ = ignore;
}

void Kubelet::DropStream(const std::string& name) {
  if (const auto plugin = endpoint(name)) plugin->CancelStream();
}

std::shared_ptr<KubeletEndpoint> Kubelet::endpoint(
    const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.primary;
}

}  // namespace purser::fakes
