// SPDX-License-Identifier: Apache-2.0
#include "base/logfmt.h"

#include <cstdint>

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

// C0, DEL and the C1 controls (U+0080 to U+009F), which terminals obey too.
bool IsControl(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return character.size() == 2 && first == 0xc2 &&
         static_cast<uint8_t>(character[1]) < 0xa0;
}

// Appends one well-formed character as it stands between quotes. Returns
// whether it is one that needs them.
bool AppendCharacter(std::string_view character, std::string* out) {
  switch (character[0]) {
    case '\n':
      *out += "\\n";
      return true;
    case '\r':
      *out += "\\r";
      return true;
    case '\t':
      *out += "\\t";
      return true;
    case '"':
      *out += "\\\"";
      return true;
    case '\\':
      *out += "\\\\";
      return true;
    case ' ':
    case '=':
      *out += character;
      return true;
    default:
      break;
  }
  if (!IsControl(character)) {
    *out += character;
    return false;
  }
  *out += fmt::format("\\u{:04x}", static_cast<uint8_t>(character.back()));
  return true;
}

void AppendValue(std::string_view value, std::string* out) {
  bool needs_quotes = value.empty();
  std::string escaped;
  for (size_t i = 0; i < value.size();) {
    const size_t length = Utf8CharacterLength(value.substr(i));
    if (length == 0) {
      escaped += "\\ufffd";
      needs_quotes = true;
      ++i;
      continue;
    }
    needs_quotes |= AppendCharacter(value.substr(i, length), &escaped);
    i += length;
  }
  *out += needs_quotes ? fmt::format("\"{}\"", escaped) : escaped;
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
