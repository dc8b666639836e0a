// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "planner/report.h"

namespace purser::planner {

// An SVG picture: for each device what a queue pair of the workload's largest
// group costs by depth, a line for each number of SGEs, with the cliffs marked
// and the workload's groups where they lie; and the pod's sum as a bar, beside
// the textbook's. Legible on light and dark.
std::string Plot(std::span<const Report> reports);

}  // namespace purser::planner
