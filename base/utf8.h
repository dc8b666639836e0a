// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace purser::base {

// The length, 1 to 4, of the well-formed UTF-8 character (Unicode 15, table
// 3-7: no surrogates, no overlong forms) that `text` begins with; 0 if it
// begins with none.
size_t Utf8CharacterLength(std::string_view text);

// `text` after the mark that some editors begin a file with (U+FEFF).
std::string_view WithoutByteOrderMark(std::string_view text);

// `text` as it stands between double quotes: one line of UTF-8 without control
// characters, with the escapes of JSON (\n \r \t \" \\ \u001b). A byte that is
// no UTF-8 becomes \ufffd.
std::string EscapeText(std::string_view text);

// `text` in double quotes for a message: escaped, and cut to 60 bytes.
std::string QuoteForMessage(std::string_view text);

}  // namespace purser::base
