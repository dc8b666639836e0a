// SPDX-License-Identifier: Apache-2.0
//
// What a driver counts, as sysfs shows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace purser::rdma {

struct Statistic {
  int port_num = 0;  // 0: of the device
  std::string name;  // "out_of_buffer"
  uint64_t value = 0;
};

// class/infiniband/DEVICE/hw_counters and ports/N/hw_counters under
// `sysfs_root`, by port and name. Empty where the driver has none; NotFound
// where there is no such device. Counters that cannot be read (some are root's)
// are left out.
absl::StatusOr<std::vector<Statistic>> DriverStatistics(
    const std::filesystem::path& sysfs_root, const std::string& device);

}  // namespace purser::rdma
