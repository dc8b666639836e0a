// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

namespace purser::base {

// Blocks SIGINT, SIGTERM and SIGHUP in this and every later thread and ignores
// SIGPIPE. Call before the first thread.
void BlockSignals();

// Waits for one of the blocked signals; nullopt after `timeout` (if given). For
// the main thread.
std::optional<int> WaitForSignal(
    std::optional<std::chrono::milliseconds> timeout = std::nullopt);

}  // namespace purser::base
