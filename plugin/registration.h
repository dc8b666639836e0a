// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "plugin/file_id.h"
#include "plugin/kubelet_client.h"
#include "plugin/peers.h"
#include "plugin/resource_server.h"

namespace purser::plugin {

struct RegistrationOptions {
  // The kubelet gives itself 10 s to dial back.
  std::chrono::milliseconds register_deadline{12'000};
  // Patience without ListAndWatch: after a registration, and after a stream
  // that was open ended. Each is doubled at every try without success, and is
  // as it was once a stream has lasted.
  std::chrono::milliseconds stream_timeout{5'000};
  std::chrono::milliseconds lost_stream_timeout{300};
  std::chrono::milliseconds longest_stream_timeout{80'000};
  std::chrono::milliseconds lasting_stream{10'000};
  std::chrono::milliseconds first_retry{50};
  std::chrono::milliseconds longest_retry{10'000};
  // In case a file system sends no events.
  std::chrono::milliseconds check_interval{5'000};
};

// Keeps one resource served and registered in the way it is told, one socket
// at a time: every registration that the kubelet may have heard of is followed
// by one on a new socket only, after the old one was closed. Owned by
// Registrar, whose thread it belongs to, but for state().
class Registration {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // What the registrar sees.
  struct World {
    RegistrationWay way = RegistrationWay::kKubeletSocket;
    std::string directory;  // for our socket; it exists
    // kKubeletSocket; nullopt: the kubelet is not there, and why_not says it.
    std::optional<FileId> kubelet_socket;
    absl::Status why_not;
    std::vector<LiveEndpoint> others;  // of other processes
  };

  struct State {
    std::string resource;
    absl::Status readiness;  // OK: registered, and the kubelet listens
    uint64_t registered = 0, failed = 0;  // registrations since the start
  };

  Registration(const RegistrationOptions& options,
               std::shared_ptr<ResourceServer> server, KubeletClient& client);
  const ResourceServer& server() const { return server_; }

  // Compares what is with what should be, and mends it. Returns when to look
  // again if nothing happens before.
  TimePoint Reconcile(const World& world);
  // AlreadyExists: another installation serves the resource.
  absl::Status CheckPeers(const World& world);
  // Serves on a new socket.
  absl::Status Bind(const World& world);
  // Closes the socket: the way changes, or there is no directory.
  void Release();
  void NotReady(const absl::Status& why);

  // When the kubelet was last known to know of us: now where a stream is open,
  // else when it called the socket in its plugins_registry, unless it refused.
  std::optional<TimePoint> heard_at() const;
  bool listened_to() const { return server_.streams().presence().open; }
  // Whether the kubelet's socket has no such service as Register.
  bool unknown_to_kubelet() const { return unknown_to_kubelet_; }

  State state() const;  // any thread

 private:
  struct Incarnations {
    FileId kubelet_socket, own_socket;
    bool operator==(const Incarnations&) const = default;
  };

  TimePoint Keep(const World& world);
  TimePoint KeepSocket(const World& world);
  TimePoint KeepRegistered(const World& world);
  TimePoint KeepAnnounced(const World& world);
  TimePoint Register(const World& world);
  // When the patience for a stream ends; nullopt while one is open.
  std::optional<TimePoint> StreamDue(
      TimePoint registered_at,
      std::chrono::milliseconds patience_if_lost) const;
  // A stream is open: all is well, but where the kubelet may have lost us.
  // nullopt: it has.
  std::optional<TimePoint> Listened(const World& world);
  void LogUnheard();
  // Whether a process of this installation that started later serves the
  // resource: two that register in turns would push each other out for ever.
  // Not for ever, since it may be unable to register.
  bool StandsBy();
  // Returns whether it is news, that is, to be logged.
  bool SetReadiness(const absl::Status& status);
  // Doubles `retry` for the next time.
  TimePoint After(std::chrono::milliseconds& retry) const;

  const RegistrationOptions& options_;
  const std::shared_ptr<ResourceServer> owned_;
  ResourceServer& server_;  // that one
  KubeletClient& client_;

  Peers peers_;
  absl::Status foreign_;  // another installation is there

  TimePoint next_bind_;
  std::chrono::milliseconds bind_retry_;
  TimePoint bound_at_;
  bool endpoint_spent_ = false;  // a kubelet may have heard of it

  std::optional<FileId> kubelet_socket_;    // of the attempts
  std::optional<Incarnations> attempted_;   // the last one
  std::optional<Incarnations> registered_;  // the last success
  TimePoint registered_at_;
  std::chrono::system_clock::time_point registered_wall_;
  bool answer_lost_ = false;  // the last attempt ran into its deadline
  TimePoint next_attempt_;
  std::chrono::milliseconds retry_;
  int unheard_ = 0;  // registrations in a row without a lasting stream
  bool unknown_to_kubelet_ = false;
  std::optional<TimePoint> standby_since_;

  mutable std::mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
