// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace purser::base {

// Blocks SIGINT, SIGTERM and SIGHUP in this and every later thread and ignores
// SIGPIPE. Call before the first thread.
void BlockSignals();

// Waits for one of the blocked signals; nullopt after `timeout` (if given). For
// the main thread.
std::optional<int> WaitForSignal(
    std::optional<std::chrono::milliseconds> timeout = std::nullopt);

// The blocked signals as a descriptor, for a thread that waits for others, too:
// readable when there is one to be taken.
absl::StatusOr<FileDescriptor> OpenSignals();
// nullopt: there is none (now).
std::optional<int> TakeSignal(const FileDescriptor& signals);

}  // namespace purser::base
