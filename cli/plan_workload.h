// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "cli/command_line.h"
#include "cli/run.h"
#include "planner/device.h"
#include "planner/workload.h"

namespace purser::cli {

// From the file, or of the one group that flags describe. InvalidArgument where
// either is at fault.
absl::StatusOr<planner::Workload> WorkloadOf(const WorkloadSource& source);

// By flags, else the workload's own, else all that are known.
absl::StatusOr<std::vector<planner::Device>> DevicesOf(
    const WorkloadSource& source, const planner::Workload& workload,
    const Environment& environment);

// The one that a pod would run on: by flags, else the only one of this machine,
// else the workload's own.
absl::StatusOr<planner::Device> DeviceOf(const WorkloadSource& source,
                                         const planner::Workload& workload,
                                         const Environment& environment);

}  // namespace purser::cli
