// SPDX-License-Identifier: Apache-2.0
//
// The part of the fake kubelet that knows which plugins a resource has, and
// what becomes of one when another comes or goes.
#include <algorithm>
#include <utility>

#include "tests/fakes/kubelet.h"

namespace purser::fakes {
namespace {

template <typename Endpoints>
auto Find(Endpoints& endpoints, const KubeletEndpoint* wanted) {
  return std::find_if(
      endpoints.begin(), endpoints.end(),
      [&](const auto& endpoint) { return endpoint.get() == wanted; });
}

}  // namespace

absl::StatusOr<Kubelet::Connected> Kubelet::MakePrimary(
    const std::string& name, std::shared_ptr<KubeletEndpoint> fresh) {
  std::lock_guard lock(mutex_);
  if (!running_) return absl::UnavailableError("kubelet stops");
  Connected connected{.watch = !ignore_lists_};
  Entry& entry = entries_[name];
  if (options_.second_plugin == SecondPlugin::kSideBySide &&
      !entry.connected_paths.insert(fresh->path()).second) {
    entry.never_let_go.insert(fresh->path());
    return absl::UnknownError("device plugin already connected: " +
                              fresh->path());
  }
  if (options_.second_plugin == SecondPlugin::kStopsTheFirst) {
    connected.stopped = entry.primary;
    entry.endpoints.clear();
  }
  entry.resource.endpoint =
      std::filesystem::path(fresh->path()).filename().string();
  entry.endpoints.push_back(fresh);
  entry.primary = std::move(fresh);
  entry.resource.connected = connected.watch;
  entry.resource.plugins = static_cast<int>(entry.endpoints.size());
  ++entry.resource.registrations;
  Record(name, "registered");
  return connected;
}

void Kubelet::OnList(const std::string& name, const KubeletEndpoint* from,
                     const v1beta1::ListAndWatchResponse& list) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[name];
  if (Find(entry.endpoints, from) == entry.endpoints.end()) return;
  entry.resource.healthy.clear();
  entry.resource.unhealthy.clear();
  for (const v1beta1::Device& device : list.devices()) {
    (device.health() == "Healthy" ? entry.resource.healthy
                                  : entry.resource.unhealthy)
        .insert(device.id());
  }
  entry.resource.repeated_ids +=
      list.devices_size() - static_cast<int>(entry.resource.capacity());
  ++entry.resource.lists;
  Record(name, "listed");
}

void Kubelet::OnEnd(const std::string& name, const KubeletEndpoint* from,
                    const grpc::Status& status) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[name];
  const auto ended = Find(entry.endpoints, from);
  if (ended == entry.endpoints.end()) return;
  const std::shared_ptr<KubeletEndpoint> kept = *ended;  // this thread is its
  entry.resource.last_error = FromGrpc(status).ToString();
  if (options_.second_plugin == SecondPlugin::kMixesThemUp) {
    if (entry.endpoints.back().get() != from)
      entry.endpoints.back()->CancelStream();
    gone_.insert(gone_.end(), entry.endpoints.begin(), entry.endpoints.end());
    entry.endpoints.clear();
  } else {
    gone_.push_back(kept);
    entry.endpoints.erase(ended);
    if (entry.never_let_go.contains(kept->path())) return;
    entry.connected_paths.erase(kept->path());
  }
  entry.primary = entry.endpoints.empty() ? nullptr : entry.endpoints.front();
  entry.resource.plugins = static_cast<int>(entry.endpoints.size());
  if (entry.primary == nullptr) {
    entry.resource.unhealthy.merge(entry.resource.healthy);
    entry.resource.healthy.clear();
    entry.resource.connected = false;
  }
  Record(name, "disconnected");
}

// Its socket has left plugins_registry.
void Kubelet::Deregister(const std::string& name, const std::string& path) {
  std::lock_guard lock(mutex_);
  for (const auto& endpoint : entries_[name].endpoints) {
    if (endpoint->path() == path ||
        options_.second_plugin == SecondPlugin::kMixesThemUp)
      endpoint->CancelStream();
  }
}

}  // namespace purser::fakes
