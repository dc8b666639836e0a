// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "rdma/discovery.h"

namespace purser::plugin {

enum class DeviceHealth {
  kHealthy,
  kOtherNamespace,  // as good as healthy: a pod has it
  kPortDown,        // no port is up
  kFatal,           // it reported a fatal error
  kIncomplete,      // no uverbs device: a container could do nothing with it
};
// "healthy", "other_netns", "port_down", "fatal", "incomplete".
const char* DeviceHealthName(DeviceHealth health);

struct Judgement {
  DeviceHealth health = DeviceHealth::kHealthy;
  std::string reason;  // for people; empty when healthy
};

// What sysfs and /dev/infiniband under `dev_root` say of a device. Takes umad
// and issm devices that do not exist out of it: a node that is named in a
// container's devices and does not exist would fail the container.
Judgement JudgeDevice(const std::filesystem::path& dev_root,
                      rdma::SysfsDevice& device);

// Whether traffic can flow: ACTIVE, and not without a physical link.
bool PortIsUp(const rdma::PortStatus& port);
// "port 1 ACTIVE Ethernet, port 2 DOWN InfiniBand (Polling)".
std::string PortSummary(const rdma::SysfsDevice& device);

}  // namespace purser::plugin
