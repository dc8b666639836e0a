// SPDX-License-Identifier: Apache-2.0
//
// What `purser top` shows, as text: a pure function of two looks at the
// sidecar.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::cli {

// One look.
struct Look {
  v1::GetStatusResponse status;
  std::vector<v1::QueuePair> queue_pairs;  // empty unless they are wanted
  double seconds = 0;                      // of a clock that only grows
};

// Lines with a line feed at the end of each. Rates are of the time between the
// looks; `before`: null at the first, which has none.
std::string RenderTop(const Look& now, const Look* before, TopOrder order);

}  // namespace purser::cli
