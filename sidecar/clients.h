// SPDX-License-Identifier: Apache-2.0
//
// Who is attached. A client is named by an unguessable token, valid while its
// Attach stream lives. Tables of what clients hold check IsLive() under their
// own lock when they add, and are told of a client's end only after Remove():
// so nothing is ever added to a client that has ended. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "sidecar/counters.h"

namespace purser::sidecar {

class Clients {
 public:
  explicit Clients(uint64_t max_clients) : max_clients_(max_clients) {}

  // Its client_id: 128 random bits in hex. InvalidArgument for a name of more
  // than 63 or of unprintable characters; ResourceExhausted when there are
  // max_clients.
  absl::StatusOr<std::string> Add(const std::string& name);
  void Remove(const std::string& client_id);

  // Unauthenticated: client_id is not one of a live Attach stream.
  absl::StatusOr<std::string> NameOf(const std::string& client_id) const;
  bool IsLive(const std::string& client_id) const;
  // What goes through its queues; null for one that is not live.
  std::shared_ptr<Traffic> TrafficOf(const std::string& client_id) const;
  uint64_t count() const;

  // By client_id.
  struct Attached {
    std::string name;
    std::chrono::steady_clock::time_point since;
    std::shared_ptr<Traffic> traffic;
  };
  std::map<std::string, Attached> All() const;

 private:
  const uint64_t max_clients_;
  mutable std::mutex mutex_;
  std::map<std::string, Attached> attached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
