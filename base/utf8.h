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

// `text` in double quotes for a message: escaped where it is not printable and
// cut to 60 bytes.
std::string QuoteForMessage(std::string_view text);

}  // namespace purser::base
