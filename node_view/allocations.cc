// SPDX-License-Identifier: Apache-2.0
#include "node_view/allocations.h"

#include <map>
#include <utility>

#include "node_view/lines.h"

namespace purser::node_view {

std::vector<Allocation> ReadAllocations(
    const ::v1::ListPodResourcesResponse& response,
    const std::function<bool(const std::string& resource)>& counts) {
  std::map<std::pair<ContainerName, std::string>, uint64_t> units;
  for (const ::v1::PodResources& pod : response.pod_resources()) {
    for (const ::v1::ContainerResources& container : pod.containers()) {
      for (const ::v1::ContainerDevices& devices : container.devices()) {
        if (!counts(devices.resource_name())) continue;
        units[{{.namespace_name = pod.namespace_(),
                .pod = pod.name(),
                .container = container.name()},
               devices.resource_name()}] +=
            static_cast<uint64_t>(devices.device_ids_size());
      }
    }
  }
  std::vector<Allocation> allocations;
  allocations.reserve(units.size());
  for (const auto& [key, count] : units)
    allocations.push_back({key.first, key.second, count});
  return allocations;
}

uint64_t QueueMemoryUnitBytes(std::string_view resource) {
  constexpr std::string_view kPrefix = "rdma/wqe-", kUnit = "mib";
  constexpr uint64_t kMostMib = 1 << 20;
  std::string_view name = resource;
  if (!name.starts_with(kPrefix) || !name.ends_with(kUnit)) return 0;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kUnit.size());
  uint64_t mib = 1;
  if (!name.empty() && !ParseNumber(name, 10, &mib)) return 0;
  return mib <= kMostMib ? mib << 20 : 0;
}

}  // namespace purser::node_view
