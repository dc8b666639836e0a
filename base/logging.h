// SPDX-License-Identifier: Apache-2.0
//
// Structured logs in logfmt on stderr: time=… level=info msg="…" key=value …
// INFO: state changed; WARN: degraded; ERROR: a person must act. Nothing is
// logged per packet, scrape or poll. Thread-safe; until InitLogging the level
// is info. Control characters and bytes that are no UTF-8 come out escaped, so
// that an event is always one line.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// "debug", "info", "warn", "error"; else InvalidArgument that lists them.
absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text);

// Call once, before the first thread.
void InitLogging(LogLevel level);
// Another level, at any time.
void SetLogLevel(LogLevel level);

// One key=value of a log line; values are quoted where logfmt needs it.
struct LogField {
  template <typename T>
  LogField(std::string_view k, const T& v)
      : key(k), value(fmt::format("{}", v)) {}
  LogField(std::string_view k, const absl::Status& v)
      : key(k), value(v.ToString()) {}
  std::string_view key;
  std::string value;
};

void LogDebug(std::string_view message,
              std::initializer_list<LogField> fields = {});
void LogInfo(std::string_view message,
             std::initializer_list<LogField> fields = {});
void LogWarn(std::string_view message,
             std::initializer_list<LogField> fields = {});
void LogError(std::string_view message,
              std::initializer_list<LogField> fields = {});

}  // namespace purser::base
