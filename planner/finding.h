// SPDX-License-Identifier: Apache-2.0
//
// One line of the pre-flight: what was looked at, what was found, what to do.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace purser::planner {

enum class Level { kOk, kWarning, kFailure };
const char* LevelName(Level level);  // "ok", "warning", "failure"

struct Finding {
  Level level = Level::kOk;
  std::string check;   // "max_qp_wr", one word: what scripts look for
  std::string found;   // with the figures
  std::string advice;  // what to do; of what is well mostly ""
  // What creation then ends in, "EINVAL"; "" where that is not known. Not
  // shown.
  std::string error = {};
};
using Findings = std::vector<Finding>;

Level Worst(std::span<const Finding> findings);  // kOk of none

// One line each, a count at the end.
std::string RenderFindings(std::span<const Finding> findings);
std::string RenderFindingsJson(std::span<const Finding> findings);

}  // namespace purser::planner
