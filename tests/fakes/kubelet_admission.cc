// SPDX-License-Identifier: Apache-2.0
//
// The part of the fake kubelet that admits containers.
#include <algorithm>
#include <iterator>

#include "spdlog/fmt/fmt.h"
#include "tests/fakes/kubelet.h"

namespace purser::fakes {
namespace {

// Numbers in their order, whatever their length.
bool Shorter(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

std::vector<std::string> Kubelet::FreeUnits(const std::string& resource,
                                            int count,
                                            absl::Status* why_not) const {
  const auto found = entries_.find(resource);
  if (found == entries_.end() || found->second.primary == nullptr) {
    *why_not = absl::FailedPreconditionError(
        "cannot allocate unregistered device " + resource);
    return {};
  }
  std::set<std::string> taken;
  for (const auto& [name, resources] : containers_) {
    if (auto held = resources.find(resource); held != resources.end())
      taken.insert(held->second.begin(), held->second.end());
  }
  std::vector<std::string> free;
  std::set_difference(found->second.resource.healthy.begin(),
                      found->second.resource.healthy.end(), taken.begin(),
                      taken.end(), std::back_inserter(free));
  std::sort(free.begin(), free.end(), Shorter);
  if (free.size() >= static_cast<size_t>(count)) return free;
  *why_not = absl::ResourceExhaustedError(
      fmt::format("Insufficient {}: requested {}, available {}", resource,
                  count, free.size()));
  return {};
}

absl::StatusOr<std::vector<std::string>> Kubelet::TakeUnits(
    const std::string& container, const std::string& resource, int count) {
  absl::Status why_not;
  std::vector<std::string> free, preferred;
  // As the kubelet does, it asks without its lock; then it takes what is left.
  if (const std::shared_ptr<KubeletEndpoint> plugin = endpoint(resource)) {
    {
      std::lock_guard lock(mutex_);
      free = FreeUnits(resource, count, &why_not);
    }
    preferred = plugin->Prefer(free, count);
  }
  std::lock_guard lock(mutex_);
  free = FreeUnits(resource, count, &why_not);
  if (free.empty()) return why_not;
  std::stable_partition(free.begin(), free.end(), [&](const std::string& id) {
    return std::find(preferred.begin(), preferred.end(), id) != preferred.end();
  });
  free.resize(static_cast<size_t>(count));
  containers_[container][resource] = free;
  return free;
}

absl::StatusOr<ContainerAllocation> Kubelet::Allocate(
    const std::string& container,
    const std::vector<std::pair<std::string, int>>& requests) {
  ContainerAllocation merged;
  std::map<std::string, std::string> seen;
  auto is_first = [&](const std::string& key, const std::string& value) {
    const auto [at, inserted] = seen.emplace(key, value);
    if (!inserted && at->second != value) merged.conflicts.push_back(key);
    return inserted;
  };
  for (const auto& [resource, count] : requests) {
    absl::StatusOr<std::vector<std::string>> ids =
        TakeUnits(container, resource, count);
    if (!ids.ok()) return Free(container), ids.status();
    v1beta1::AllocateRequest request;
    auto* wanted = request.add_container_requests();
    for (const std::string& id : *ids) wanted->add_devices_ids(id);
    const std::shared_ptr<KubeletEndpoint> plugin = endpoint(resource);
    absl::StatusOr<v1beta1::AllocateResponse> response =
        plugin != nullptr
            ? plugin->Allocate(request)
            : absl::UnavailableError("the plugin of " + resource + " is gone");
    if (!response.ok()) return Free(container), response.status();
    if (response->container_responses().empty())
      return Free(container), absl::InternalError("no response in allocation");
    const auto& answer = response->container_responses(0);
    merged.ids[resource] = *ids;
    for (const auto& [key, value] : answer.envs())
      if (is_first("env " + key, value)) merged.envs[key] = value;
    for (const auto& device : answer.devices())
      if (is_first("device " + device.container_path(),
                   device.host_path() + device.permissions()))
        merged.devices.push_back(device);
    for (const auto& device : answer.cdi_devices())
      merged.cdi_devices.insert(device.name());
    for (const auto& mount : answer.mounts())
      if (is_first("mount " + mount.container_path(), mount.host_path()))
        merged.mounts.push_back(mount);
  }
  return merged;
}

absl::Status Kubelet::Readmit(const std::string& container) const {
  std::lock_guard lock(mutex_);
  const auto held = containers_.find(container);
  if (held == containers_.end()) return absl::NotFoundError(container);
  for (const auto& [resource, ids] : held->second) {
    const auto found = entries_.find(resource);
    for (const std::string& id : ids) {
      if (found == entries_.end() ||
          found->second.resource.healthy.count(id) == 0) {
        return absl::FailedPreconditionError(
            fmt::format("UnexpectedAdmissionError: previously allocated {} {} "
                        "is no longer healthy",
                        resource, id));
      }
    }
  }
  return absl::OkStatus();
}

void Kubelet::Free(const std::string& container) {
  std::lock_guard lock(mutex_);
  containers_.erase(container);
}

}  // namespace purser::fakes
