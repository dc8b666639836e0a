// SPDX-License-Identifier: Apache-2.0
//
// What a plot shows: which lines, in a diagram for each device.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/panel.h"
#include "planner/report.h"

namespace purser::planner {

inline constexpr uint32_t kLeastDepthShown = 16;
inline constexpr uint32_t kMostDepthShown = (1 << 15) - 1;

struct PlotContent {
  // The kind of queue pair that the lines are of, but for its SGEs.
  std::string shape;
  // What the lines of each panel are, by style: "4 SGEs".
  std::vector<std::string> labels;
  size_t bold = 0;  // of the workload's own SGEs
  std::vector<Panel> panels;
};

// The group that takes most gives the lines their shape.
PlotContent ContentOf(std::span<const Report> reports);

}  // namespace purser::planner
