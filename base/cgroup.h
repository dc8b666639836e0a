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
  int version = 0;             // 1 or 2
  std::string path;            // the directory read, for messages
  uint64_t current_bytes = 0;  // 0 for the root of version 2: not accounted
  std::optional<uint64_t> max_bytes;  // the smallest limit of the cgroup and
                                      // its visible ancestors; nullopt: none
  std::string max_origin;             // the file that holds that limit
};

// Reads the files anew at each call; any thread. Understands version 2, version
// 1 and both side by side (hybrid); a private cgroup namespace, where the mount
// is the container's own cgroup, and the host's, where /proc/self/cgroup may
// name a path that the mount does not show: then the mount is taken to be the
// container's own. Limits above the mount (the pod's) cannot be seen.
class CgroupReader {
 public:
  // /sys/fs/cgroup and /proc, or file trees like them.
  explicit CgroupReader(std::filesystem::path cgroup_root = "/sys/fs/cgroup",
                        std::filesystem::path proc_root = "/proc");
  // NotFound: no memory controller, or this process's cgroup cannot be seen.
  // Other errors name the file that could not be read or understood.
  absl::StatusOr<CgroupMemory> Memory() const;

 private:
  std::filesystem::path cgroup_root_, proc_root_;
};

}  // namespace purser::base
