// SPDX-License-Identifier: Apache-2.0
#include "base/logfmt.h"

#include "absl/strings/ascii.h"
#include "base/utf8.h"

namespace purser::base {
namespace {

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

void AppendKey(std::string_view key, std::string* out) {
  if (key.empty()) out->push_back('_');
  for (const char c : key) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       c == '_' || c == '.' || c == '-' || c == '/';
    out->push_back(plain ? c : '_');
  }
}

void AppendValue(std::string_view value, std::string* out) {
  const std::string escaped = EscapeText(value);
  const bool plain = !value.empty() && escaped == value &&
                     value.find_first_of(" =") == std::string_view::npos;
  *out += plain ? escaped : fmt::format("\"{}\"", escaped);
}

}  // namespace

std::string RenderLogfmt(absl::Time time, LogLevel level,
                         std::string_view message,
                         std::initializer_list<LogField> fields) {
  std::string line = fmt::format(
      "time={} level={} msg=",
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()),
      LevelName(level));
  AppendValue(message, &line);
  for (const LogField& field : fields) {
    line.push_back(' ');
    AppendKey(field.key, &line);
    line.push_back('=');
    AppendValue(field.value, &line);
  }
  return line;
}

}  // namespace purser::base
