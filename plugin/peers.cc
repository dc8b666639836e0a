// SPDX-License-Identifier: Apache-2.0
#include "plugin/peers.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// A process that replaces its socket has none for a moment.
constexpr std::chrono::milliseconds kGoneAfter{1'000};
// From the making of a socket to the end of its registration.
constexpr std::chrono::seconds kRegistersWithin{15};

}  // namespace

Peers::Peers(std::string resource, Identity own)
    : resource_(std::move(resource)),
      own_(EndpointName::Make(resource_, own, 0)) {}

absl::Status Peers::Look(const std::vector<LiveEndpoint>& endpoints,
                         TimePoint now) {
  for (auto& [started, peer] : peers_)
    if (!peer.absent_since) peer.absent_since = now;
  absl::Status foreign;
  for (const LiveEndpoint& endpoint : endpoints) {
    const EndpointName& name = endpoint.name;
    if (name.resource != own_.resource) continue;
    if (name.installation != own_.installation) {
      // The kubelet would have two plugins that do not know of each other.
      foreign = absl::AlreadyExistsError(fmt::format(
          "another device plugin serves {} on this node, of another "
          "installation ({}): uninstall one of them, or give its pools other "
          "names",
          resource_, name.text()));
      continue;
    }
    peers_[name.started_ms] = {name, endpoint.bound_at, std::nullopt};
    if (!std::exchange(logged_, true)) {
      base::LogWarn(
          "another process of this installation serves the resource too, as "
          "during a rolling update; the newer one takes over",
          {{"resource", resource_}, {"other", name.text()}});
    }
  }
  return foreign;
}

const EndpointName* Peers::Newer() const {
  if (peers_.empty()) return nullptr;
  const auto& [started, peer] = *peers_.rbegin();
  return started > own_.started_ms && !peer.absent_since ? &peer.endpoint
                                                         : nullptr;
}

bool Peers::LaterOneWent(std::chrono::system_clock::time_point registered_at,
                         TimePoint now) {
  bool later = false;
  for (auto at = peers_.begin(); at != peers_.end();) {
    const Peer& peer = at->second;
    if (!peer.absent_since || now < *peer.absent_since + kGoneAfter) {
      ++at;
      continue;
    }
    later = later || peer.bound_at + kRegistersWithin > registered_at;
    at = peers_.erase(at);
  }
  return later;
}

std::optional<Peers::TimePoint> Peers::decides_at() const {
  std::optional<TimePoint> first;
  for (const auto& [started, peer] : peers_) {
    if (!peer.absent_since) continue;
    const TimePoint at = *peer.absent_since + kGoneAfter;
    first = first ? std::min(*first, at) : at;
  }
  return first;
}

}  // namespace purser::plugin
