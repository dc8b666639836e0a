// SPDX-License-Identifier: Apache-2.0
#include "base/logging.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/logfmt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::base {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

std::string RenderValue(const std::string& value) {
  const std::string line =
      RenderLogfmt(absl::UnixEpoch(), LogLevel::kInfo, "m", {{"key", value}});
  const std::string prefix = "time=1970-01-01T00:00:00.000Z level=info msg=m ";
  EXPECT_TRUE(line.starts_with(prefix)) << line;
  return line.substr(prefix.size());
}

TEST(LogfmtTest, TimeIsUtcWithMilliseconds) {
  EXPECT_EQ(RenderLogfmt(absl::FromUnixMillis(1714564800007), LogLevel::kWarn,
                         "two words", {}),
            "time=2024-05-01T12:00:00.007Z level=warn msg=\"two words\"");
}

TEST(LogfmtTest, NamesEachLevel) {
  const struct {
    LogLevel level;
    std::string name;
  } kCases[] = {{LogLevel::kDebug, "level=debug"},
                {LogLevel::kInfo, "level=info"},
                {LogLevel::kWarn, "level=warn"},
                {LogLevel::kError, "level=error"}};
  for (const auto& c : kCases)
    EXPECT_THAT(RenderLogfmt(absl::UnixEpoch(), c.level, "m", {}),
                HasSubstr(" " + c.name + " "));
}

TEST(LogfmtTest, QuotesValuesThatNeedIt) {
  const struct {
    std::string value, rendered;
  } kCases[] = {
      {"plain", "key=plain"},
      {"mlx5_0:1/a.b-c", "key=mlx5_0:1/a.b-c"},
      {"caf\xc3\xa9", "key=caf\xc3\xa9"},
      {"", R"(key="")"},
      {"a b", R"(key="a b")"},
      {"a=b", R"(key="a=b")"},
      {"say \"hi\"", R"(key="say \"hi\"")"},
      {"\"", R"(key="\"")"},
      {"back\\slash", R"(key="back\\slash")"},
      {"two\nlines", R"(key="two\nlines")"},
      {"\r\t", R"(key="\r\t")"},
      {std::string("\0", 1), R"(key="\u0000")"},
      {"\x1b[31m", R"(key="\u001b[31m")"},
      {"\xff\xfe", R"(key="\ufffd\ufffd")"},
      {"cut \xe2\x82", R"(key="cut \ufffd\ufffd")"},
  };
  for (const auto& c : kCases) EXPECT_EQ(RenderValue(c.value), c.rendered);
}

TEST(LogfmtTest, KeysCannotBreakTheLine) {
  const std::string line =
      RenderLogfmt(absl::UnixEpoch(), LogLevel::kInfo, "m",
                   {{"a b=\"\n\xff", 1}, {"", 2}, {"queue_pair.num-1/2", 3}});
  EXPECT_THAT(line, testing::EndsWith(" a_b____=1 _=2 queue_pair.num-1/2=3"));
}

TEST(LogfmtTest, FieldsTakeWhatFmtTakes) {
  const std::string line =
      RenderLogfmt(absl::UnixEpoch(), LogLevel::kInfo, "m",
                   {{"integer", -1},
                    {"large", uint64_t{18446744073709551615u}},
                    {"bool", true},
                    {"double", 0.5},
                    {"literal", "text"},
                    {"status", absl::NotFoundError("no such device")}});
  EXPECT_THAT(line, testing::EndsWith("integer=-1 large=18446744073709551615 "
                                      "bool=true double=0.5 literal=text "
                                      "status=\"NOT_FOUND: no such device\""));
}

TEST(LoggingTest, ParsesLevels) {
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(*ParseLogLevel("info"), LogLevel::kInfo);
  EXPECT_EQ(*ParseLogLevel("warn"), LogLevel::kWarn);
  EXPECT_EQ(*ParseLogLevel("error"), LogLevel::kError);
  for (const std::string_view wrong : {"", "INFO", "warning", "trace"})
    EXPECT_EQ(ParseLogLevel(wrong).status().code(),
              absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseLogLevel("loud").status().message(),
            "log level \"loud\" is unknown: use debug, info, warn or error");
}

TEST(LoggingTest, WritesLinesAtOrAboveTheLevelToStderr) {
  const struct {
    LogLevel level;
    std::vector<std::string> written, withheld;
  } kCases[] = {
      {LogLevel::kDebug, {"debug", "info", "warn", "error"}, {}},
      {LogLevel::kInfo, {"info", "warn", "error"}, {"debug"}},
      {LogLevel::kWarn, {"warn", "error"}, {"debug", "info"}},
      {LogLevel::kError, {"error"}, {"debug", "info", "warn"}},
  };
  for (const auto& c : kCases) {
    InitLogging(c.level);
    testing::internal::CaptureStderr();
    LogDebug("m");
    LogInfo("m");
    LogWarn("m");
    LogError("m");
    const std::string output = testing::internal::GetCapturedStderr();
    for (const std::string& level : c.written)
      EXPECT_THAT(output, HasSubstr("level=" + level + " msg=m\n"));
    for (const std::string& level : c.withheld)
      EXPECT_THAT(output, Not(HasSubstr("level=" + level)));
  }
}

TEST(LoggingTest, BracesInMessagesAreNotFormats) {
  InitLogging(LogLevel::kInfo);
  testing::internal::CaptureStderr();
  LogInfo("{} {0} %v %%", {{"field", "{}"}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("msg=\"{} {0} %v %%\" field={}\n"));
}

TEST(LoggingTest, LinesOfManyThreadsStayWhole) {
  InitLogging(LogLevel::kInfo);
  testing::internal::CaptureStderr();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        for (int j = 0; j < 100; ++j) LogInfo("hello", {{"j", j}});
      });
  }
  const std::string output = testing::internal::GetCapturedStderr();
  const std::vector<std::string> lines =
      absl::StrSplit(output, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 400u);
  for (const std::string& line : lines)
    EXPECT_THAT(line, MatchesRegex("time=[0-9TZ:.-]+ level=info msg=hello "
                                   "j=[0-9]+"));
}

}  // namespace
}  // namespace purser::base
