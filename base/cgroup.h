// SPDX-License-Identifier: Apache-2.0
//
// Memory figures of this process's own cgroup, version 2 or 1, under given
// roots.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace purser::base {

struct CgroupMemory {
  int version = 0;   // 1 or 2
  std::string path;  // the directory read, for messages
  uint64_t current_bytes = 0;
  std::optional<uint64_t> max_bytes;  // the smallest limit of the cgroup and
                                      // its visible ancestors; nullopt: none
  std::string max_origin;             // the file that holds that limit
};

class CgroupReader {
 public:
  // /sys/fs/cgroup and /proc, or file trees like them.
  explicit CgroupReader(std::filesystem::path cgroup_root = "/sys/fs/cgroup",
                        std::filesystem::path proc_root = "/proc");
  // NotFound: no memory controller. Other errors name the file that could not
  // be read or understood.
  absl::StatusOr<CgroupMemory> Memory() const;

 private:
  std::filesystem::path cgroup_root_, proc_root_;
};

}  // namespace purser::base
