// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

constexpr size_t kLongestQuote = 60;

struct LeadByte {
  uint8_t first, last;             // of the first byte
  size_t length;                   // of the character
  uint8_t second_min, second_max;  // of the second byte
};
constexpr LeadByte kLeadBytes[] = {
    {0x00, 0x7f, 1, 0x00, 0x00}, {0xc2, 0xdf, 2, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf},
    {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf},
    {0xf4, 0xf4, 4, 0x80, 0x8f},
};

bool Within(uint8_t byte, uint8_t min, uint8_t max) {
  return min <= byte && byte <= max;
}

// C0, DEL and the C1 controls (U+0080 to U+009F), which terminals obey too.
bool IsControl(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return character.size() == 2 && first == 0xc2 &&
         static_cast<uint8_t>(character[1]) < 0xa0;
}

void AppendEscaped(std::string_view character, std::string* out) {
  switch (character[0]) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    default:
      break;
  }
  if (IsControl(character)) {
    *out += fmt::format("\\u{:04x}", static_cast<uint8_t>(character.back()));
  } else {
    *out += character;
  }
}

}  // namespace

size_t Utf8CharacterLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (const LeadByte& lead : kLeadBytes) {
    if (!Within(byte(0), lead.first, lead.last)) continue;
    if (lead.length > text.size()) return 0;
    if (lead.length > 1 && !Within(byte(1), lead.second_min, lead.second_max))
      return 0;
    for (size_t i = 2; i < lead.length; ++i)
      if (!Within(byte(i), 0x80, 0xbf)) return 0;
    return lead.length;
  }
  return 0;
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

std::string EscapeText(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8CharacterLength(text.substr(i));
    if (length == 0) {
      escaped += "\\ufffd";
      ++i;
      continue;
    }
    AppendEscaped(text.substr(i, length), &escaped);
    i += length;
  }
  return escaped;
}

std::string QuoteForMessage(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t length =
        std::max<size_t>(1, Utf8CharacterLength(text.substr(end)));
    if (end + length > kLongestQuote) break;
    end += length;
  }
  return fmt::format("\"{}\"{}", EscapeText(text.substr(0, end)),
                     end < text.size() ? "..." : "");
}

}  // namespace purser::base
