// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>

namespace purser::cli {

// The exit code of what has been done, and of its results' way out: results
// that are lost, as on a full disk, are no success.
int Delivered(int exit_code, std::ostream& out, std::ostream& err);

}  // namespace purser::cli
