// SPDX-License-Identifier: Apache-2.0
//
// A kubelet, as far as a device plugin can tell: a real gRPC server on a real
// unix socket, in a directory of the test's. At its start it deletes every file
// in device-plugins/ but its checkpoint; inside Register it dials the plugin
// and asks for the options; then it watches ListAndWatch and never dials again.
// When the last stream ends all devices of the resource are unhealthy
// (allocatable 0, capacity as it was). Allocations outlive its restarts.
// plugins_registry is watched beside it, or instead, where an option says so.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/fakes/kubelet_endpoint.h"
#include "tests/fakes/kubelet_registry.h"

namespace purser::fakes {

// What a kubelet does when a second plugin registers a resource.
enum class SecondPlugin {
  kStopsTheFirst,  // old ones
  kMixesThemUp,    // up to 1.35: it hears both, and when the stream of either
                   // ends it closes the connection of the second
  kSideBySide,     // 1.37: either may go. It refuses a path that is connected,
                   // and forgets for ever to let go of it
};

struct KubeletOptions {
  bool kubelet_socket = true;
  bool plugins_registry = false;
  // False: it takes none but other kinds of plugin from there.
  bool device_plugins_from_registry = true;
  SecondPlugin second_plugin = SecondPlugin::kSideBySide;
  std::chrono::milliseconds registry_interval{20};  // a real one: 1 s
};

// What a resource looked like when something happened to it.
struct KubeletEvent {
  std::chrono::steady_clock::time_point at;
  std::string resource;
  std::string what;  // "registered", "listed", "disconnected", "restarted"
  size_t capacity = 0, allocatable = 0;
};

// What one container was given, merged from its resources' answers as the
// kubelet merges them: the first to set a key wins.
struct ContainerAllocation {
  std::map<std::string, std::vector<std::string>> ids;  // by resource
  std::map<std::string, std::string> envs;
  std::vector<v1beta1::DeviceSpec> devices;
  std::vector<v1beta1::Mount> mounts;
  std::set<std::string> cdi_devices;
  std::vector<std::string> conflicts;  // keys set twice with other values
};

// Thread-safe.
class Kubelet {
 public:
  struct Resource {
    std::string endpoint;
    std::set<std::string> healthy, unhealthy;  // ids
    bool connected = false;
    int registrations = 0;  // since the kubelet's construction
    int plugins = 0;        // connected
    int lists = 0;
    int repeated_ids = 0;    // in all lists
    std::string last_error;  // of the stream
    size_t capacity() const { return healthy.size() + unhealthy.size(); }
  };
  using Observer = std::function<void(const KubeletEvent&)>;

  explicit Kubelet(std::filesystem::path root_dir, Observer observer = {},
                   KubeletOptions options = {});
  ~Kubelet();

  absl::Status Start();
  // Goes away: connections closed, kubelet.sock removed.
  void Stop();
  // As kill -9 leaves things: kubelet.sock stays behind and refuses.
  void Crash();
  absl::Status Restart();

  std::optional<Resource> resource(const std::string& name) const;
  std::vector<KubeletEvent> history() const;
  // Waits until `condition` holds of the resource, and says whether it did.
  bool WaitFor(const std::string& name,
               const std::function<bool(const Resource&)>& condition,
               std::chrono::milliseconds timeout) const;
  // Until the resource is connected with at least one allocatable unit.
  bool WaitForAllocatable(const std::string& name,
                          std::chrono::milliseconds timeout) const;

  // Until that many calls of Register have begun since construction.
  bool WaitForRegisterCalls(int calls, std::chrono::milliseconds timeout) const;

  // Admits a container: picks units, asks the plugins, and remembers the units
  // as taken by `container` until Free().
  absl::StatusOr<ContainerAllocation> Allocate(
      const std::string& container,
      const std::vector<std::pair<std::string, int>>& requests);
  // A restarting container is admitted only if all units that it had are still
  // listed as healthy.
  absl::Status Readmit(const std::string& container) const;
  void Free(const std::string& container);

  // Registrations are answered with this error until it is taken back.
  void RefuseRegistrations(std::optional<absl::Status> error);
  // Each answer to Register is held back that long, those under way too.
  void DelayRegistrations(std::chrono::milliseconds delay);
  // Registers without opening ListAndWatch.
  void IgnoreLists(bool ignore);
  // Ends the stream, as the kubelet does after any fault on it.
  void DropStream(const std::string& name);
  // The plugin's end, for calls of the test's own; nullptr when there is none.
  std::shared_ptr<KubeletEndpoint> endpoint(const std::string& name) const;

  std::filesystem::path device_plugins_dir() const {
    return root_dir_ / "device-plugins";
  }
  std::filesystem::path plugins_registry_dir() const {
    return root_dir_ / "plugins_registry";
  }
  std::filesystem::path socket_path() const {
    return device_plugins_dir() / "kubelet.sock";
  }

 private:
  class Registration;
  struct Entry {
    Resource resource;
    std::vector<std::shared_ptr<KubeletEndpoint>> endpoints;  // that it hears
    std::shared_ptr<KubeletEndpoint> primary;  // that it asks to allocate
    // kSideBySide.
    std::set<std::string> connected_paths, never_let_go;
  };

  grpc::Status Register(const v1beta1::RegisterRequest& request);
  // The part that both ways of registration have in common.
  absl::Status Connect(const std::string& name, const std::string& path);
  struct Connected {
    std::shared_ptr<KubeletEndpoint> stopped;  // the one before, if it must
    bool watch = true;
  };
  absl::StatusOr<Connected> MakePrimary(const std::string& name,
                                        std::shared_ptr<KubeletEndpoint> fresh);
  void Deregister(const std::string& name, const std::string& path);
  void OnList(const std::string& name, const KubeletEndpoint* from,
              const v1beta1::ListAndWatchResponse& list);
  void OnEnd(const std::string& name, const KubeletEndpoint* from,
             const grpc::Status& status);
  absl::StatusOr<std::vector<std::string>> TakeUnits(
      const std::string& container, const std::string& resource, int count);
  // The units that are free; empty if they are too few, and `why_not` says it.
  std::vector<std::string> FreeUnits(const std::string& resource, int count,
                                     absl::Status* why_not) const;
  void Disconnect();
  // With the lock held.
  void Record(const std::string& name, const char* what);

  const std::filesystem::path root_dir_;
  const Observer observer_;
  const KubeletOptions options_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<KubeletRegistry> registry_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
  // Until no thread of theirs can run any more.
  std::vector<std::shared_ptr<KubeletEndpoint>> gone_;
  std::vector<KubeletEvent> history_;
  // By container, by resource.
  std::map<std::string, std::map<std::string, std::vector<std::string>>>
      containers_;
  std::optional<absl::Status> refusal_;
  std::chrono::milliseconds delay_{0};
  bool ignore_lists_ = false;
  int register_calls_ = 0;
  bool running_ = false;
};

}  // namespace purser::fakes
