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
  // What is told below, else what is usual of the provider on that kernel.
  queue_memory::DeviceLimits limits;
  queue_memory::ObjectCounts counts;
  // Told by the opened device or by hand.
  queue_memory::DeviceLimits told_limits;
  queue_memory::ObjectCounts told_counts;
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

// What the device itself tells goes before what is usual.
void Tell(const queue_memory::DeviceLimits& limits,
          const queue_memory::ObjectCounts& counts, Device* device);

// Limits that can be told by hand: "maxQpWr", … as in ibv_device_attr.
std::span<const std::string_view> LimitNames();
// NotFound with a suggestion where there is no such limit; InvalidArgument,
// "must be …", where no device of that provider can have the value.
absl::Status SetLimit(std::string_view name, uint64_t value, Device* device);

// "has" where `told`, one of told_counts, says so; else "usually has".
const char* Has(const Device& device, uint64_t told);

}  // namespace purser::planner
