// SPDX-License-Identifier: Apache-2.0
//
// Keeps every resource served and registered with the kubelet, through the
// kubelet's restarts, deletions of sockets and lost streams. One thread, which
// compares what is with what should be whenever something may have changed:
// events only wake it, so a lost or doubled event does no harm.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "plugin/config/registration_mode.h"
#include "plugin/directory_watch.h"
#include "plugin/kubelet_client.h"
#include "plugin/registration.h"
#include "plugin/resource_server.h"
#include "plugin/wakeup.h"

namespace purser::plugin {

struct RegistrarOptions : RegistrationOptions {
  std::string device_plugins_dir;
  std::string plugins_registry_dir;  // "": not to be used
  RegistrationMode mode = RegistrationMode::kAuto;
  Identity identity;
  // kAuto. How long the kubelet's socket may not answer before its
  // plugins_registry is tried: at first, and where the socket was seen to
  // answer; and how long plugins_registry may do nothing while the socket
  // answers (a kubelet looks once a second) before the socket is tried.
  std::chrono::milliseconds socket_patience{2'000};
  std::chrono::milliseconds known_socket_patience{60'000};
  std::chrono::milliseconds registry_patience{5'000};
  // How long the kubelet's socket may be absent before that is an error.
  std::chrono::milliseconds kubelet_absence{5'000};
  // Without inotify.
  std::chrono::milliseconds poll_interval{300};
};

// Owned by App.
class Registrar {
 public:
  using ResourceState = Registration::State;

  using Servers = std::vector<std::shared_ptr<ResourceServer>>;

  Registrar(RegistrarOptions options, const Servers& servers,
            std::shared_ptr<Wakeup> wakeup);
  ~Registrar();

  // Before Start(): an error is one that no waiting mends. InvalidArgument: the
  // sockets' paths are too long. AlreadyExists: another installation serves a
  // resource.
  absl::Status Prepare();
  void Start();
  // Cancels a registration under way and waits for the thread. May be called
  // again.
  void Stop();

  // These and no others from now on: what is known of those that stay is kept,
  // and those that are left out are closed. Any thread; does not wait.
  void SetServers(Servers servers);

  // AlreadyExists: another installation serves one of these resources. Any
  // thread.
  absl::Status CheckPeers(const std::vector<std::string>& resources) const;

  std::vector<ResourceState> States() const;  // any thread
  RegistrationWay way() const;                // any thread

 private:
  using TimePoint = Registration::TimePoint;
  using World = Registration::World;

  void Run(std::stop_token stop);
  void AdoptServers();
  TimePoint ReconcileAll();
  // Of other processes, whichever way they go.
  std::vector<LiveEndpoint> Others() const;
  // nullopt: there is no directory for our sockets, and `why_not` says it.
  std::optional<World> Look(absl::Status* why_not) const;
  // Logs it, as an error once it has lasted. Returns when that will be.
  TimePoint KubeletAbsent(const absl::Status& reason, bool hopeless);

  // Returns when a decision is due.
  TimePoint ChooseWay();
  TimePoint LeaveSocketWay(bool socket_answers, bool unknown);
  TimePoint LeaveRegistryWay(bool socket_answers);
  void Take(RegistrationWay way, const char* why);

  const RegistrarOptions options_;
  const std::shared_ptr<Wakeup> wakeup_;
  KubeletClient client_;
  // Changed by the registrar thread alone, under the mutex; it reads without.
  std::vector<std::unique_ptr<Registration>> registrations_;

  // The registrar thread's own.
  std::unique_ptr<DirectoryWatch> watch_;
  std::optional<TimePoint> kubelet_absent_since_;
  bool absence_logged_ = false;
  bool socket_answered_ = false;  // ever
  // The way that is not taken would be the better one since then.
  std::optional<TimePoint> misgivings_since_;

  mutable std::mutex mutex_;
  std::optional<Servers> wanted_ ABSL_GUARDED_BY(mutex_);  // not adopted yet
  RegistrationWay way_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace purser::plugin
