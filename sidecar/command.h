// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rdma/verbs.h"

namespace purser::sidecar {

// The process: flags, environment, signals, App. The exit code: 0 after a
// signal, 1 when something is missing or fails, 2 for bad flags, config or
// environment.
int RunCommand(int argc, const char* const* argv, rdma::Verbs& verbs);

}  // namespace purser::sidecar
