// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plugin/live_endpoints.h"

namespace purser::plugin {

// The other processes that serve a resource: during a rolling update the older
// or the newer one, at other times none. For one thread.
class Peers {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Peers(std::string resource, Identity own);

  // What is there now. AlreadyExists: one of another installation.
  absl::Status Look(const std::vector<LiveEndpoint>& endpoints, TimePoint now);
  // The newest, if it started after this process.
  const EndpointName* Newer() const;

  // Whether one went that a kubelet may have registered after this process did,
  // at `registered_at`. Some kubelets, when the last plugin that they
  // registered goes, believe that all of them went. One that replaces its
  // socket has not gone. True once.
  bool LaterOneWent(std::chrono::system_clock::time_point registered_at,
                    TimePoint now);
  // When LaterOneWent() may become true; nullopt: not by mere waiting.
  std::optional<TimePoint> decides_at() const;

 private:
  struct Peer {
    EndpointName endpoint;
    std::chrono::system_clock::time_point bound_at;
    std::optional<TimePoint> absent_since;
  };
  const std::string resource_;
  const EndpointName own_;
  std::map<uint64_t, Peer> peers_;  // by the time of their start
  bool logged_ = false;
};

}  // namespace purser::plugin
