// SPDX-License-Identifier: Apache-2.0
#include "plugin/pool_resource.h"

#include <utility>

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

std::vector<const Device*> Members(const Snapshot& snapshot,
                                   const std::string& pool) {
  std::vector<const Device*> members;
  if (auto found = snapshot.pools.find(pool); found != snapshot.pools.end()) {
    for (size_t index : found->second)
      members.push_back(&snapshot.devices[index]);
  }
  return members;
}

// On the node and in the container alike: where libibverbs looks.
void AddDeviceNode(const std::string& node,
                   v1beta1::ContainerAllocateResponse* response) {
  v1beta1::DeviceSpec* spec = response->add_devices();
  spec->set_host_path("/dev/infiniband/" + node);
  spec->set_container_path(spec->host_path());
  spec->set_permissions("rw");
}

}  // namespace

PoolResource::PoolResource(PoolConfig config)
    : config_(std::move(config)), name_(config_.full_name()) {}

Advertisement PoolResource::Advertise(const Snapshot& snapshot) const {
  const std::vector<const Device*> members = Members(snapshot, name_);
  if (members.empty() || config_.rdma_hca_max == 0) return {};
  UnitRange all{.first = 0, .count = config_.rdma_hca_max, .healthy = false};
  for (const Device* device : members) {
    if (device->health == DeviceHealth::kHealthy) {
      all.healthy = true;
      all.reason.clear();
      break;
    }
    all.reason += fmt::format("{}{}: {}", all.reason.empty() ? "" : "; ",
                              device->sysfs.name, device->reason);
  }
  return {{all}};
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> PoolResource::Allocate(
    std::span<const std::string> /*ids*/, const Snapshot& snapshot) const {
  v1beta1::ContainerAllocateResponse response;
  std::string names;
  for (const Device* device : Members(snapshot, name_)) {
    names += (names.empty() ? "" : ",") + device->sysfs.name;
    AddDeviceNode(device->sysfs.uverbs, &response);
    for (const std::string& umad : device->sysfs.umads)
      AddDeviceNode(umad, &response);
    for (const std::string& issm : device->sysfs.issms)
      AddDeviceNode(issm, &response);
  }
  if (snapshot.rdma_cm) AddDeviceNode("rdma_cm", &response);
  (*response.mutable_envs())[PoolDevicesVariable(
      config_.resource_prefix, config_.resource_name)] = names;
  for (const Mount& mount : config_.mounts) {
    v1beta1::Mount* out = response.add_mounts();
    out->set_host_path(mount.host_path);
    out->set_container_path(mount.container_path);
    out->set_read_only(mount.read_only);
  }
  return response;
}

}  // namespace purser::plugin
