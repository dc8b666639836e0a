// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plugin/config/config.h"
#include "plugin/held_units.h"
#include "plugin/inventory.h"

namespace purser::plugin {

// Devices of other network namespaces that no pool has: a pod took them there,
// and of what pools select by only their place on the bus is still seen.
// Indices into `snapshot`'s devices.
std::vector<size_t> UnassignedElsewhere(const Snapshot& snapshot);

// Gives each of them to the pool of which a container has a unit of that
// device, so that the container may be started again.
void AssignHeldDevices(const HeldUnits& held,
                       const std::vector<PoolConfig>& pools,
                       Snapshot& snapshot);

}  // namespace purser::plugin
