// SPDX-License-Identifier: Apache-2.0
//
// One diagram of a plot: the bytes of a queue pair by its depth, on axes of
// powers of two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/staircase.h"
#include "planner/svg.h"

namespace purser::planner {

// Where the diagram lies, and what its axes hold.
struct Frame {
  Point corner;
  double width = 0, height = 0;
  uint32_t least_depth = 1, most_depth = 2;
  uint64_t least_bytes = 1, most_bytes = 2;

  Point At(uint32_t depth, uint64_t bytes) const;
};

struct Panel {
  // A group of the workload.
  struct Mark {
    std::string name;
    uint32_t depth = 0;
    uint64_t bytes = 0;
  };
  std::string title, note;
  std::vector<std::vector<Stair>> lines;  // by style; empty: refused
  size_t bold = 0;  // the line whose cliffs have their depths written at them
  std::vector<Mark> marks;
  bool named_marks = false;
};

void Draw(const Panel& panel, const Frame& frame, Svg* svg);

}  // namespace purser::planner
