// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/machine_checks.h"
#include "planner/triage.h"

namespace purser::cli {

// This process's limits and cgroup, and the node's memory. `ring_allocator`:
// MLX_QP_ALLOC_TYPE, may be null.
planner::Machine ReadMachine(const std::filesystem::path& cgroup_root,
                             const std::filesystem::path& proc_root,
                             const char* ring_allocator);

// As uname has it: "6.1.0-31-amd64".
std::string KernelRelease();

// Named as "rxe0 port 1 out_of_sequence". NotFound: there is no such device.
absl::StatusOr<std::vector<planner::Counter>> ReadCounters(
    const std::filesystem::path& sysfs_root, const std::string& device);

}  // namespace purser::cli
