// SPDX-License-Identifier: Apache-2.0
//
// The rendering of log lines, apart from where they go.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/logging.h"

namespace purser::base {

// "time=2024-05-01T12:00:00.123Z level=info msg=\"…\" key=value …", without a
// line end. Whatever message and fields hold, the result is one line of UTF-8
// that a logfmt parser (github.com/go-logfmt) reads back: bytes that are no
// UTF-8 come out as U+FFFD, bytes that may not stand in a key as "_".
std::string RenderLogfmt(absl::Time time, LogLevel level,
                         std::string_view message,
                         std::initializer_list<LogField> fields);

}  // namespace purser::base
