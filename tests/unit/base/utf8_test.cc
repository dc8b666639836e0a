// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace purser::base {
namespace {

using std::string_view_literals::operator""sv;

TEST(Utf8Test, CharacterLength) {
  const struct {
    std::string_view text;
    size_t length;
  } kCases[] = {
      {"", 0},
      {"a", 1},
      {"\0"sv, 1},
      {"\x7f", 1},
      {"\x80", 0},              // a continuation
      {"\xc1\xbf", 0},          // overlong
      {"\xc2\x80", 2},          // U+0080
      {"\xdf\xbf", 2},          // U+07FF
      {"\xc3", 0},              // cut
      {"\xc3(", 0},             // no continuation
      {"\xe0\x9f\xbf", 0},      // overlong
      {"\xe0\xa0\x80", 3},      // U+0800
      {"\xed\x9f\xbf", 3},      // U+D7FF
      {"\xed\xa0\x80", 0},      // a surrogate
      {"\xef\xbf\xbf", 3},      // U+FFFF
      {"\xe2\x82", 0},          // cut
      {"\xe2\x82(", 0},         // no continuation
      {"\xf0\x8f\xbf\xbf", 0},  // overlong
      {"\xf0\x90\x80\x80", 4},  // U+10000
      {"\xf4\x8f\xbf\xbf", 4},  // U+10FFFF
      {"\xf4\x90\x80\x80", 0},  // above
      {"\xf0\x9f\x98(", 0},     // no continuation
      {"\xf5\x80\x80\x80", 0},
      {"\xff", 0},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(Utf8CharacterLength(c.text), c.length) << QuoteForMessage(c.text);
}

TEST(Utf8Test, EscapesWhatIsNotOnePrintableLine) {
  EXPECT_EQ(EscapeText("a \"b\" \\ \n\r\t"), R"(a \"b\" \\ \n\r\t)");
  EXPECT_EQ(EscapeText("\0\x1b\x7f"sv), R"(\u0000\u001b\u007f)");
  EXPECT_EQ(EscapeText("\xc2\x9b[2J \xc2\xa0"), "\\u009b[2J \xc2\xa0");
  EXPECT_EQ(EscapeText("\xff\xc3\xa9\xe2\x82"),
            "\\ufffd\xc3\xa9\\ufffd\\ufffd");
}

TEST(Utf8Test, QuotesCutLongTextBetweenCharacters) {
  EXPECT_EQ(QuoteForMessage(""), "\"\"");
  EXPECT_EQ(QuoteForMessage("it's"), "\"it's\"");
  const std::string sixty(60, 'a');
  EXPECT_EQ(QuoteForMessage(sixty), "\"" + sixty + "\"");
  EXPECT_EQ(QuoteForMessage(sixty + "b"), "\"" + sixty + "\"...");
  const std::string fifty_nine(59, 'a');
  EXPECT_EQ(QuoteForMessage(fifty_nine + "\xc3\xa9"),
            "\"" + fifty_nine + "\"...");
}

}  // namespace
}  // namespace purser::base
