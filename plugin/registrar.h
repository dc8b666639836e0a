// SPDX-License-Identifier: Apache-2.0
//
// Keeps every resource served and registered with the kubelet, through the
// kubelet's restarts, deletions of sockets and lost streams. One thread, which
// compares what is with what should be whenever something may have changed:
// events only wake it, so a lost or doubled event does no harm.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "plugin/directory_watch.h"
#include "plugin/file_id.h"
#include "plugin/kubelet_client.h"
#include "plugin/resource_server.h"
#include "plugin/wakeup.h"

namespace purser::plugin {

struct RegistrarOptions {
  std::string device_plugins_dir;
  // The kubelet gives itself 10 s to dial back.
  std::chrono::milliseconds register_deadline{10'000};
  // After a registration, or the end of a stream, without ListAndWatch. Doubled
  // at each try without success.
  std::chrono::milliseconds stream_timeout{5'000};
  std::chrono::milliseconds longest_stream_timeout{80'000};
  std::chrono::milliseconds first_retry{50};
  std::chrono::milliseconds longest_retry{10'000};
  // How long the kubelet's socket may be absent before that is an error.
  std::chrono::milliseconds kubelet_absence{5'000};
  // Without inotify; and with it, in case a file system sends no events.
  std::chrono::milliseconds poll_interval{300};
  std::chrono::milliseconds check_interval{5'000};
};

// Owned by App; the servers outlive it.
class Registrar {
 public:
  Registrar(RegistrarOptions options, std::vector<ResourceServer*> servers,
            std::shared_ptr<Wakeup> wakeup);
  ~Registrar();

  void Start();
  // Cancels a registration under way and waits for the thread. May be called
  // again.
  void Stop();

  struct ResourceState {
    std::string resource;
    absl::Status readiness;  // OK: registered, and the kubelet listens
    uint64_t registered = 0, failed = 0;  // registrations since the start
  };
  std::vector<ResourceState> States() const;  // any thread

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  // What stands between a resource and the kubelet.
  struct Incarnations {
    FileId kubelet_socket, own_socket;
    bool operator==(const Incarnations&) const = default;
  };
  struct Entry {
    ResourceServer* server = nullptr;
    std::optional<Incarnations> registered;  // the last success
    TimePoint registered_at;
    std::optional<Incarnations> attempted;
    bool answer_lost = false;  // the last attempt ran into its deadline
    TimePoint next_attempt;
    std::chrono::milliseconds retry, stream_timeout;
    bool bound = false;
    TimePoint next_bind;
    std::chrono::milliseconds bind_retry;
  };

  void Run(std::stop_token stop);
  // Each returns when to look again if nothing happens before.
  TimePoint ReconcileAll();
  TimePoint ReconcileEntry(size_t index, const FileId& kubelet_socket);
  TimePoint ReconcileSocket(size_t index);
  TimePoint ReconcileStream(size_t index);
  TimePoint Register(size_t index, const Incarnations& incarnations);
  // Nothing can be registered: `reason` for all. Binds what can be bound.
  TimePoint WaitForKubelet(const absl::Status& reason);
  // Returns whether it is news, that is, to be logged.
  bool SetReadiness(size_t index, const absl::Status& status);
  // Doubles `retry` for the next time.
  TimePoint After(std::chrono::milliseconds& retry) const;

  const RegistrarOptions options_;
  const std::shared_ptr<Wakeup> wakeup_;
  // The registrar thread's own.
  std::vector<Entry> entries_;
  DirectoryWatch watch_;
  std::optional<TimePoint> kubelet_absent_since_;
  bool absence_logged_ = false;

  KubeletClient client_;
  mutable std::mutex mutex_;
  std::vector<ResourceState> states_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace purser::plugin
