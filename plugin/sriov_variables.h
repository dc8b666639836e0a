// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/v1beta1/api.pb.h"
#include "plugin/config/config.h"
#include "plugin/inventory.h"

namespace purser::plugin {

// What containers of the SR-IOV network device plugin find in their
// environment: the ids of the devices by comma, and, as JSON, what is known of
// each: "generic" (its id), "rdma" (its nodes in the container, its name),
// "extra" (the configuration's additionalInfo, that of the device over that of
// "*").
void SetSriovVariables(const PoolConfig& pool,
                       const std::vector<const Device*>& devices,
                       const Snapshot& snapshot,
                       v1beta1::ContainerAllocateResponse* response);

}  // namespace purser::plugin
