// SPDX-License-Identifier: Apache-2.0
//
// What a plan is made for: a provider's rule and the limits of a device, which
// are told by an opened device, by hand, or are the provider's defaults.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "queue_memory/registry.h"

namespace purser::planner {

struct Device {
  std::string name;  // "mlx5_0"; of none in particular, the profile's: "mlx5"
  std::string what;  // for people: "ConnectX-5 and later"
  queue_memory::Provider provider = queue_memory::Provider::kUnknown;
  queue_memory::DeviceLimits limits;
  // How many objects it has; 0: not known.
  uint64_t max_qp = 0, max_cq = 0, max_mr = 0, max_srq = 0;
  // Limits are what the opened device tells, not its provider's defaults.
  bool opened = false;
};

// By a profile's name, a provider's or a kernel driver's. NotFound with a
// suggestion and the names that there are.
absl::StatusOr<Device> DeviceOfProfile(std::string_view name);
// Where the provider's rule depends on the kernel, as soft-RoCE's does: that of
// the kernel `text`, "6.1" or as uname says it, "6.1.0-31-amd64".
// InvalidArgument where it is no version.
absl::Status SetKernelVersion(std::string_view text, Device* device);
// One of each profile that the memory model has.
std::vector<Device> AllDevices();

// Limits that can be told by hand: "maxQpWr", … as in ibv_device_attr.
std::span<const std::string_view> LimitNames();
// `value` from 1 to UINT32_MAX. NotFound with a suggestion where there is no
// such limit.
absl::Status SetLimit(std::string_view name, uint32_t value, Device* device);

}  // namespace purser::planner
