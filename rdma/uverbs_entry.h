// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace purser::rdma {

// The sysfs entry of a device's uverbs character device. It goes at once when
// the device is removed, while the removal itself waits until the last process
// has closed the device (soft-RoCE tells of it in no other way).
struct UverbsEntry {
  std::filesystem::path path;  // /sys/class/infiniband_verbs/uverbs0
  uint64_t inode = 0;          // sysfs gives none twice
  bool operator==(const UverbsEntry&) const = default;
};

// That of an RDMA device by its name; nullopt: there is none.
absl::StatusOr<std::optional<UverbsEntry>> FindUverbsEntry(
    const std::filesystem::path& sysfs_root, const std::string& device);

// False when the entry is gone, or has become another device's. One system
// call.
bool IsThere(const UverbsEntry& entry);

}  // namespace purser::rdma
