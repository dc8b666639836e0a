// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/plan.h"

namespace purser::planner {

// What a plan's figures mean for whoever runs the workload: who pays, what is
// pinned, what is only estimated, what exceeds the device or the kubelet.
void AddWarnings(const Workload& workload, Plan* plan);

}  // namespace purser::planner
