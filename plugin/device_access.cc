// SPDX-License-Identifier: Apache-2.0
#include "plugin/device_access.h"

#include <string>

namespace purser::plugin {
namespace {

// On the node and in the container alike: where libibverbs looks.
void AddDeviceNode(const std::string& node,
                   v1beta1::ContainerAllocateResponse* response) {
  v1beta1::DeviceSpec* spec = response->add_devices();
  spec->set_host_path("/dev/infiniband/" + node);
  spec->set_container_path(spec->host_path());
  spec->set_permissions("rw");
}

}  // namespace

void GrantAccess(const PoolConfig& pool,
                 const std::vector<const Device*>& devices,
                 const Snapshot& snapshot,
                 v1beta1::ContainerAllocateResponse* response) {
  std::string names;
  for (const Device* device : devices) {
    names += (names.empty() ? "" : ",") + device->sysfs.name;
    AddDeviceNode(device->sysfs.uverbs, response);
    for (const std::string& umad : device->sysfs.umads)
      AddDeviceNode(umad, response);
    for (const std::string& issm : device->sysfs.issms)
      AddDeviceNode(issm, response);
  }
  if (snapshot.rdma_cm) AddDeviceNode("rdma_cm", response);
  (*response->mutable_envs())[PoolDevicesVariable(pool.resource_prefix,
                                                  pool.resource_name)] = names;
  for (const Mount& mount : pool.mounts) {
    v1beta1::Mount* out = response->add_mounts();
    out->set_host_path(mount.host_path);
    out->set_container_path(mount.container_path);
    out->set_read_only(mount.read_only);
  }
}

}  // namespace purser::plugin
