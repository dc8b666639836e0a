// SPDX-License-Identifier: Apache-2.0
#include "node_view/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/file_tree.h"

namespace purser::node_view {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  ForEachLine(text, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(LinesTest, LastLineNeedsNoEnd) {
  EXPECT_THAT(LinesOf(""), IsEmpty());
  EXPECT_THAT(LinesOf("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(LinesOf("a\n"), ElementsAre("a"));
}

class LinesOfFileTest : public ::testing::Test {
 protected:
  std::vector<std::string> Read(const std::string& text) {
    tree_.Write("file", text);
    std::vector<std::string> lines;
    const absl::Status status = ForEachLineOfFile(
        tree_.path("file"),
        [&](std::string_view line) { lines.emplace_back(line); });
    EXPECT_TRUE(status.ok()) << status;
    return lines;
  }
  fakes::FileTree tree_;
};

TEST_F(LinesOfFileTest, AreThoseOfTheText) {
  EXPECT_THAT(Read(""), IsEmpty());
  EXPECT_THAT(Read("a\nb"), ElementsAre("a", "b"));
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(Read(many), LinesOf(many));
}

TEST_F(LinesOfFileTest, OneThatIsTooLongIsLeftOutAndNoOther) {
  const std::string longest((64 << 10) - 1, 'x');
  EXPECT_THAT(Read("a\n" + longest + "\nb"), ElementsAre("a", longest, "b"));
  EXPECT_THAT(Read("a\n" + longest + "x\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(Read("a\n" + std::string(1 << 20, 'x') + "\nb"),
              ElementsAre("a", "b"));
  EXPECT_THAT(Read("a\n" + std::string(1 << 20, 'x')), ElementsAre("a"));
}

TEST_F(LinesOfFileTest, ErrorsNameTheFile) {
  const absl::Status status =
      ForEachLineOfFile(tree_.path("none"), [](std::string_view /*line*/) {});
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(tree_.path("none")));
  EXPECT_FALSE(ForEachLineOfFile(tree_.root(), [](std::string_view) {}).ok())
      << "a directory";
}

TEST(ParseNumberTest, TakesAWholeNumberAlone) {
  uint64_t number = 0;
  EXPECT_TRUE(ParseNumber("ff", 16, &number));
  EXPECT_EQ(number, 255u);
  for (const char* text : {"", "12x", " 1", "-1", "18446744073709551616"})
    EXPECT_FALSE(ParseNumber(text, 10, &number)) << text;
}

TEST(TakeWordTest, CutsWordsOffTheFront) {
  std::string_view text = "  one\ttwo  ";
  EXPECT_EQ(TakeWord(&text), "one");
  EXPECT_EQ(TakeWord(&text), "two");
  EXPECT_EQ(TakeWord(&text), "");
  EXPECT_EQ(TakeWord(&text), "");
}

}  // namespace
}  // namespace purser::node_view
