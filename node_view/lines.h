// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace purser::node_view {

// Calls `visit` with each line of a text, without its end.
void ForEachLine(std::string_view text,
                 absl::FunctionRef<void(std::string_view line)> visit);

// Those of a file, in 64 KiB of memory however large it is: a process makes its
// own /proc/PID/maps as long as it likes. A line that is longer is left out.
// The status is that of the errno, and names the file.
absl::Status ForEachLineOfFile(
    const std::string& path,
    absl::FunctionRef<void(std::string_view line)> visit);

// The number that all of `text` is; false when it is none.
bool ParseNumber(std::string_view text, int base, uint64_t* number);

// The next word of `text`, which is cut off its front; "" at its end.
std::string_view TakeWord(std::string_view* text);

}  // namespace purser::node_view
