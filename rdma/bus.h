// SPDX-License-Identifier: Apache-2.0
//
// What the bus and the network show of an RDMA device, for rdma/discovery.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rdma/discovery.h"

namespace purser::rdma {

// Fills what comes from the bus. `device` is the RDMA device's directory, whose
// link "device" leads to its PCI function, or to an auxiliary device
// (sub-function) somewhere below one.
void ReadBus(const std::filesystem::path& device, SysfsDevice& out);

// The function's own netdevs of the port `port_num`.
std::vector<std::string> FunctionNetdevs(const std::filesystem::path& device,
                                         uint8_t port_num);

// Bonds over `netdevs`, and the slaves of those that are bonds themselves.
std::vector<std::string> BondNetdevs(const std::filesystem::path& sysfs_root,
                                     const std::vector<std::string>& netdevs);

}  // namespace purser::rdma
