// SPDX-License-Identifier: Apache-2.0
#include "base/logging.h"

#include <unistd.h>

#include <memory>

#include "absl/time/clock.h"
#include "base/log_sink.h"
#include "base/logfmt.h"
#include "base/utf8.h"
#include "spdlog/spdlog.h"

namespace purser::base {
namespace {

// The one logger of the process, as functions that anything may call need one.
// It is never destroyed, so that logging at exit is safe.
spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    auto* created =
        new spdlog::logger("purser", std::make_shared<LogSink>(STDERR_FILENO));
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

void Log(LogLevel level, std::string_view message,
         std::initializer_list<LogField> fields) {
  if (!Logger().should_log(SpdlogLevel(level))) return;
  Logger().log(SpdlogLevel(level), spdlog::string_view_t(RenderLogfmt(
                                       absl::Now(), level, message, fields)));
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warn") return LogLevel::kWarn;
  if (text == "error") return LogLevel::kError;
  return absl::InvalidArgumentError(
      fmt::format("log level {} is unknown: use debug, info, warn or error",
                  QuoteForMessage(text)));
}

void InitLogging(LogLevel level) { SetLogLevel(level); }

void SetLogLevel(LogLevel level) { Logger().set_level(SpdlogLevel(level)); }

void LogDebug(std::string_view message,
              std::initializer_list<LogField> fields) {
  Log(LogLevel::kDebug, message, fields);
}
void LogInfo(std::string_view message, std::initializer_list<LogField> fields) {
  Log(LogLevel::kInfo, message, fields);
}
void LogWarn(std::string_view message, std::initializer_list<LogField> fields) {
  Log(LogLevel::kWarn, message, fields);
}
void LogError(std::string_view message,
              std::initializer_list<LogField> fields) {
  Log(LogLevel::kError, message, fields);
}

}  // namespace purser::base
