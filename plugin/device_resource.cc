// SPDX-License-Identifier: Apache-2.0
#include "plugin/device_resource.h"

#include <algorithm>
#include <utility>

#include "plugin/device_access.h"
#include "plugin/pool_resource.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {

DeviceResource::DeviceResource(PoolConfig config)
    : config_(std::move(config)), name_(config_.full_name()) {}

Advertisement DeviceResource::Advertise(const Snapshot& snapshot) const {
  Advertisement advertisement;
  for (const Device* device : snapshot.members(name_)) {
    const bool healthy = device->health == DeviceHealth::kHealthy;
    advertisement.named.push_back(
        {.id = UnitId(device->sysfs),
         .healthy = healthy,
         .reason = healthy ? ""
                           : fmt::format("{}: {}", device->sysfs.name,
                                         device->reason)});
  }
  return advertisement;
}

std::string DeviceResource::Note(const Snapshot& snapshot) const {
  return NoUnitsReason(name_, snapshot);
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> DeviceResource::Allocate(
    std::span<const std::string> ids, const Snapshot& snapshot) const {
  v1beta1::ContainerAllocateResponse response;
  std::vector<const Device*> allotted;
  std::string addresses;
  for (const Device* device : snapshot.members(name_)) {
    const std::string id = UnitId(device->sysfs);
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) continue;
    allotted.push_back(device);
    addresses += (addresses.empty() ? "" : ",") + id;
  }
  GrantAccess(config_, allotted, snapshot, &response);
  if (config_.reach != Reach::kEveryDevice) {
    (*response.mutable_envs())[SriovVariable(
        config_.resource_prefix, config_.resource_name)] = addresses;
  }
  return response;
}

std::string UnitId(const rdma::SysfsDevice& device) {
  if (!device.function.auxiliary.empty()) return device.function.auxiliary;
  return device.pci_address.empty() ? device.name : device.pci_address;
}

}  // namespace purser::plugin
