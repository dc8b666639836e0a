// SPDX-License-Identifier: Apache-2.0
//
// What a container gets of the devices of a pool.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/v1beta1/api.pb.h"
#include "plugin/cdi_specs.h"
#include "plugin/config/config.h"
#include "plugin/inventory.h"

namespace purser::plugin {

// A device's name, the same for as long as the hardware is: its PCI address; of
// a sub-function that of its function and the number that it was made with
// ("0000:3b:00.0.sf88": its name on the auxiliary bus is another after a
// reboot); of soft devices their own name.
std::string StableName(const rdma::SysfsDevice& device);
// Its id in a pool: that name, but for a sub-function in a pool of the SR-IOV
// plugin, which knows it by its name on the auxiliary bus.
std::string UnitId(const PoolConfig& pool, const rdma::SysfsDevice& device);

// Gives a container `devices` of a pool: their nodes, by name where the pool's
// specification is in place and else one by one, the pool's mounts, and the
// variables that list them. `cdi` may be null.
void GrantAccess(const PoolConfig& pool,
                 const std::vector<const Device*>& devices,
                 const Snapshot& snapshot, const CdiSpecs* cdi,
                 v1beta1::ContainerAllocateResponse* response);

// Paths in a container of the nodes that go with a device of a pool, those that
// go with any of them included.
std::vector<std::string> NodesFor(const PoolConfig& pool, const Device& device,
                                  const Snapshot& snapshot);

// A specification for each pool that is advertised: all devices that it has.
std::vector<CdiSpec> PoolCdiSpecs(const Config& config,
                                  const Snapshot& snapshot);

// The NUMA node that the kubelet may be told of `units` units of these devices;
// -1 where they are of several, or where that would cost the kubelet too much:
// it looks at every unit once for every set of NUMA nodes.
int TopologyOf(const PoolConfig& pool,
               const std::vector<const Device*>& devices,
               const Snapshot& snapshot, uint32_t units);

}  // namespace purser::plugin
