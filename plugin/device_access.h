// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "deviceplugin/v1beta1/api.pb.h"
#include "plugin/config/config.h"
#include "plugin/inventory.h"

namespace purser::plugin {

// Gives a container `devices` of a pool: their device nodes, the pool's mounts,
// and the variable that lists them.
void GrantAccess(const PoolConfig& pool,
                 const std::vector<const Device*>& devices,
                 const Snapshot& snapshot,
                 v1beta1::ContainerAllocateResponse* response);

}  // namespace purser::plugin
