// SPDX-License-Identifier: Apache-2.0
//
// The pre-flight of a workload against a device: its limits, and the joint
// rules that make EINVAL. Pure.
#pragma once

#include "planner/finding.h"
#include "planner/plan.h"

namespace purser::planner {

// One line for each limit or rule, "ok" where all that is asked is within it. A
// group that breaks several is told of in the line of each. `plan` is that of
// `workload`.
Findings DeviceFindings(const Workload& workload, const Plan& plan);

}  // namespace purser::planner
