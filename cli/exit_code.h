// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace purser::cli {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kRefused = 3,    // by the budget or a limit of the device; nothing is broken
  kNoSidecar = 4,  // none answers at the socket: nothing was done
};

// Of a call to a sidecar that is there.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace purser::cli
