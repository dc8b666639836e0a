// SPDX-License-Identifier: Apache-2.0
#include "plugin/device_access.h"

#include <algorithm>

#include "queue_memory/queue_memory.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

using Devices = std::vector<const Device*>;

// A kubelet with more NUMA nodes than these does not align anyway, unless it is
// told to, and would look at 2^34 sets on a machine of 34.
constexpr int kMostNumaNodes = 8;
constexpr uint32_t kMostUnitsWithTopology = 1024;

// On the node and in the container alike: where libibverbs looks.
std::string NodePath(const std::string& node) {
  return "/dev/infiniband/" + node;
}

// Only InfiniBand has a subnet manager, for which issm is.
bool MayHaveSubnetManager(const rdma::SysfsDevice& device) {
  return device.ports.empty() ||
         std::any_of(device.ports.begin(), device.ports.end(),
                     [](const rdma::PortStatus& port) {
                       return port.link_layer != rdma::LinkLayer::kEthernet;
                     });
}

std::vector<std::string> NodesOf(const AllocateOptions& options,
                                 const rdma::SysfsDevice& device) {
  std::vector<std::string> nodes = {NodePath(device.uverbs)};
  auto add = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) nodes.push_back(NodePath(name));
  };
  if (options.umad) add(device.umads);
  if (options.issm && MayHaveSubnetManager(device)) add(device.issms);
  return nodes;
}

// What goes with any of the devices.
std::vector<std::string> SharedNodes(const AllocateOptions& options,
                                     const Devices& devices,
                                     const Snapshot& snapshot) {
  // EFA has no connection manager.
  const bool useful =
      std::any_of(devices.begin(), devices.end(), [](const Device* device) {
        return device->sysfs.provider != queue_memory::Provider::kEfa;
      });
  if (!options.rdma_cm || !snapshot.rdma_cm || !useful) return {};
  return {NodePath("rdma_cm")};
}

void AddNodes(const std::vector<std::string>& paths,
              v1beta1::ContainerAllocateResponse* response) {
  for (const std::string& path : paths) {
    v1beta1::DeviceSpec* spec = response->add_devices();
    spec->set_host_path(path);
    spec->set_container_path(path);
    spec->set_permissions("rw");
  }
}

// "mlx5_0:1=3,mlx5_1:1=3".
std::string GidIndexes(const Devices& devices) {
  std::string text;
  for (const Device* device : devices) {
    for (const rdma::PortStatus& port : device->sysfs.ports) {
      if (port.gid_index < 0) continue;
      text += fmt::format("{}{}:{}={}", text.empty() ? "" : ",",
                          device->sysfs.name, port.port_num, port.gid_index);
    }
  }
  return text;
}

void SetVariables(const PoolConfig& pool, const Devices& devices,
                  v1beta1::ContainerAllocateResponse* response) {
  std::string names;
  for (const Device* device : devices)
    names += (names.empty() ? "" : ",") + device->sysfs.name;
  auto& variables = *response->mutable_envs();
  variables[PoolDevicesVariable(pool.resource_prefix, pool.resource_name)] =
      names;
  if (const std::string indexes = GidIndexes(devices); !indexes.empty()) {
    variables[PoolGidIndexVariable(pool.resource_prefix, pool.resource_name)] =
        indexes;
  }
}

bool ByCdi(const CdiSpecs* cdi, const PoolConfig& pool,
           const Devices& devices) {
  return cdi != nullptr && cdi->InPlace(pool.full_name()) &&
         std::all_of(devices.begin(), devices.end(), [](const Device* device) {
           return IsCdiName(StableName(device->sysfs));
         });
}

CdiSpec PoolCdiSpec(const PoolConfig& pool, const Snapshot& snapshot) {
  const Devices members = snapshot.members(pool.full_name());
  CdiSpec spec{.resource = pool.full_name(),
               .shared_nodes = SharedNodes(pool.allocate, members, snapshot)};
  for (const Device* device : members) {
    const std::string name = StableName(device->sysfs);
    if (IsCdiName(name))
      spec.devices.push_back({name, NodesOf(pool.allocate, device->sysfs)});
  }
  return spec;
}

}  // namespace

std::string StableName(const rdma::SysfsDevice& device) {
  const rdma::Function& function = device.function;
  if (!function.auxiliary.empty()) {
    return function.index < 0 || device.pci_address.empty()
               ? function.auxiliary
               : fmt::format("{}.sf{}", device.pci_address, function.index);
  }
  return device.pci_address.empty() ? device.name : device.pci_address;
}

std::string UnitId(const PoolConfig& pool, const rdma::SysfsDevice& device) {
  return pool.of_sriov_plugin() && !device.function.auxiliary.empty()
             ? device.function.auxiliary
             : StableName(device);
}

void GrantAccess(const PoolConfig& pool, const Devices& devices,
                 const Snapshot& snapshot, const CdiSpecs* cdi,
                 v1beta1::ContainerAllocateResponse* response) {
  const bool by_cdi = ByCdi(cdi, pool, devices);
  for (const Device* device : devices) {
    if (by_cdi) {
      response->add_cdi_devices()->set_name(fmt::format(
          "{}={}", CdiKind(pool.full_name()), StableName(device->sysfs)));
    } else {
      AddNodes(NodesOf(pool.allocate, device->sysfs), response);
    }
  }
  if (!by_cdi)
    AddNodes(SharedNodes(pool.allocate, devices, snapshot), response);
  SetVariables(pool, devices, response);
  for (const Mount& mount : pool.mounts) {
    v1beta1::Mount* out = response->add_mounts();
    out->set_host_path(mount.host_path);
    out->set_container_path(mount.container_path);
    out->set_read_only(mount.read_only);
  }
}

std::vector<std::string> NodesFor(const PoolConfig& pool, const Device& device,
                                  const Snapshot& snapshot) {
  std::vector<std::string> nodes = NodesOf(pool.allocate, device.sysfs);
  for (std::string& path : SharedNodes(pool.allocate, {&device}, snapshot))
    nodes.push_back(std::move(path));
  return nodes;
}

std::vector<CdiSpec> PoolCdiSpecs(const Config& config,
                                  const Snapshot& snapshot) {
  std::vector<CdiSpec> specs;
  for (const PoolConfig& pool : config.pools)
    if (pool.advertised) specs.push_back(PoolCdiSpec(pool, snapshot));
  return specs;
}

int TopologyOf(const PoolConfig& pool, const Devices& devices,
               const Snapshot& snapshot, uint32_t units) {
  if (!pool.allocate.topology || devices.empty() ||
      units > kMostUnitsWithTopology || snapshot.numa_nodes > kMostNumaNodes)
    return -1;
  const int node = devices.front()->sysfs.numa_node;
  const bool same = std::all_of(
      devices.begin(), devices.end(),
      [&](const Device* device) { return device->sysfs.numa_node == node; });
  return same && node >= 0 ? node : -1;
}

}  // namespace purser::plugin
