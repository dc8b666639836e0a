// SPDX-License-Identifier: Apache-2.0
//
// Documents that are broken, mistaken or made to do harm.
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "base/strict_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::base {
namespace {

using std::string_view_literals::operator""sv;
using testing::HasSubstr;
using testing::StartsWith;

// Reads as a configuration would: `a` a string, `list` maps, `map` a map.
std::string Faults(std::string_view text) {
  StrictYaml yaml("c.yaml", text);
  YamlMap root = yaml.Root();
  std::string a;
  root.String("a", &a);
  root.Has("b");
  std::vector<std::string> strings;
  root.Strings("strings", &strings);
  for (YamlMap item : root.Maps("list")) item.String("a", &a);
  root.Map("map").Map("map").String("a", &a);
  const absl::Status status = yaml.Finish();
  return status.ok() ? "" : std::string(status.message());
}

std::string Repeat(std::string_view piece, size_t bytes) {
  std::string text;
  while (text.size() + piece.size() <= bytes) text += piece;
  return text;
}

TEST(StrictYamlHostileTest, BrokenTextHasItsPlace) {
  const struct {
    std::string_view text, fault;
  } kCases[] = {
      {"a: b\n\tb: c\n", "c.yaml:2:1: "},         // a tab indents
      {"map:\n  a: 1\n b: 2\n", "c.yaml:3:2: "},  // between two levels
      {"a: b\n  b: c\n", "c.yaml:2:4: "},         // deeper than allowed
      {"a: [b, c\n", "c.yaml:2:1: "},             // no end
      {"a: {b\n", "c.yaml:2:1: "},                //
      {"a: 'b\n", "c.yaml:2:1: found unexpected end of stream"},
      {"a: 'b\nb: c\n\n",
       "c.yaml:4:1: found unexpected end of stream while scanning a quoted "
       "scalar that begins on line 1"},
      {"a: \"b", "c.yaml:1:6: found unexpected end of stream"},
      {"a: \"b \\\n", "c.yaml:2:1: found unexpected end of stream"},
      {"a: b: c\n", "c.yaml:1:5: "},                        //
      {"a: \"\\q\"\n", "c.yaml:1:"},                        // unknown escape
      {"a: @b\n", "c.yaml:1:4: "},                          // reserved
      {"a: *b\n", "c.yaml:1:4: there is no anchor \"b\""},  // no such anchor
      {"]\n", "c.yaml:1:1: "},                              //
      {",\n", "c.yaml:1:1: did not find"},                  //
      {"[],[]\n", "c.yaml:1:3: did not find"},              //
      {"a: b\0c\n"sv, "c.yaml:1:5: byte 0x00 is not allowed: remove it"},
      {"a: b\n# \x04\nc: d\n", "c.yaml:2:3: byte 0x04 is not allowed"},
      {"a: \x1b[0m\n", "c.yaml:1:4: byte 0x1b is not allowed"},
      {"a: \x7f\n", "c.yaml:1:4: byte 0x7f is not allowed"},
      {"a: \xc3\xa9\xff\n",
       "c.yaml:1:5: byte 0xff is not UTF-8: save the "
       "file as UTF-8"},
      {"\xff\xfe"
       "a\0:\0"sv,
       "c.yaml:1:1: byte 0xff is not UTF-8"},  // UTF-16
  };
  for (const auto& c : kCases) {
    const std::string faults = Faults(c.text);
    EXPECT_THAT(faults, StartsWith(std::string(c.fault))) << c.text;
    EXPECT_EQ(faults.find('\n'), std::string::npos) << faults;
  }
}

TEST(StrictYamlHostileTest, AfterAFaultOfSyntaxNoOtherIsTold) {
  StrictYaml yaml("c.yaml", "a: 1\na: 2\nunknown: x\nb: [\n");
  YamlMap root = yaml.Root();
  std::string a = "default";
  EXPECT_FALSE(root.String("a", &a));
  root.Fault("c", "is required");
  EXPECT_EQ(a, "default");
  EXPECT_THAT(std::string(yaml.Finish().message()), StartsWith("c.yaml:5:1: "));
}

TEST(StrictYamlHostileTest, RootsThatAreNoMaps) {
  EXPECT_EQ(Faults("- a\n- b\n"),
            "c.yaml:1:1: the document must be a map of keys to values, not a "
            "list");
  EXPECT_EQ(Faults("\nhello\n"),
            "c.yaml:2:1: the document must be a map of keys to values, not "
            "\"hello\"");
  EXPECT_EQ(Faults("\"\"\n"),
            "c.yaml:1:1: the document must be a map of keys to values, not "
            "\"\"");
}

TEST(StrictYamlHostileTest, KeysThatAreNoText) {
  EXPECT_EQ(Faults("[x, y]: 1\na: b\n"),
            "c.yaml:1:1: a key must be plain text");
  EXPECT_EQ(Faults("{x: y}: 1\n"), "c.yaml:1:1: a key must be plain text");
  EXPECT_EQ(Faults("~: 1\n"), "c.yaml:1:1: a key must be plain text");
  EXPECT_THAT(Faults("'': 1\n"), HasSubstr("c.yaml:1:1: : unknown key"));
}

TEST(StrictYamlHostileTest, FurtherDocumentsAreRefused) {
  EXPECT_EQ(Faults("a: b\n---\na: c\n"),
            "c.yaml:3:1: a second document: only one is read");
  EXPECT_EQ(Faults("a: b\n---\n---\n- c\n"),
            "c.yaml:4:1: a second document: only one is read");
  EXPECT_THAT(Faults("a: b\n---\na: [\n"), StartsWith("c.yaml:4:1: "));
  EXPECT_EQ(Faults("---\na: b\n...\n"), "");
  EXPECT_EQ(Faults("a: b\n---\n"), "");
}

TEST(StrictYamlHostileTest, TagsThatAreNotCoreAreRefused) {
  EXPECT_EQ(Faults("a: !!binary aGk=\n"),
            "c.yaml:1:4: the tag \"tag:yaml.org,2002:binary\" is not supported "
            "here: remove it");
  EXPECT_EQ(Faults("map: !ruby/object {map: {}}\n"),
            "c.yaml:1:6: the tag \"!ruby/object\" is not supported here: "
            "remove it");
  EXPECT_EQ(Faults("a: !!str b\nmap: !!map {}\nlist: !!seq []\n"), "");
}

TEST(StrictYamlHostileTest, AliasesWorkAndMergeKeysDoNot) {
  StrictYaml yaml("c.yaml",
                  "a: &name x\nb: *name\nlist:\n- &one {a: 1}\n- *one\n");
  YamlMap root = yaml.Root();
  std::string a, b;
  root.String("a", &a);
  root.String("b", &b);
  std::vector<std::string> items;
  for (YamlMap item : root.Maps("list"))
    item.String("a", &items.emplace_back());
  EXPECT_TRUE(yaml.Finish().ok()) << yaml.Finish();
  EXPECT_EQ(a, "x");
  EXPECT_EQ(b, "x");
  EXPECT_THAT(items, testing::ElementsAre("1", "1"));

  EXPECT_EQ(Faults("map: &x {map: {}}\nlist:\n- <<: *x\n  a: b\n"),
            "c.yaml:3:3: merge keys (<<) are not supported: write the keys "
            "out");
}

TEST(StrictYamlHostileTest, AliasesInsideTheirAnchors) {
  EXPECT_EQ(Faults("map: &x\n  map: *x\n"),
            "c.yaml:2:8: an alias may not stand inside its anchor");
  EXPECT_THAT(Faults("list: &x [*x]\n"),
              HasSubstr("c.yaml:1:11: an alias may not stand inside"));
}

TEST(StrictYamlHostileTest, AliasBombsStayAsSmallAsTheirText) {
  std::string text = "x0: &x0 {a: lol}\n";
  for (int i = 1; i < 60; ++i) {
    const std::string before = "*x" + std::to_string(i - 1);
    text += "x" + std::to_string(i) + ": &x" + std::to_string(i) + " [" +
            before + "," + before + "," + before + "]\n";
  }
  text += "list: *x59\n";
  EXPECT_THAT(Faults(text), HasSubstr("list[0]: must be a map, not a list"));
}

TEST(StrictYamlHostileTest, NestingEndsAt64Levels) {
  const auto nested = [](int levels) {
    return "{unknown: " + std::string(levels - 1, '[') +
           std::string(levels - 1, ']') + ", a: b}";
  };
  EXPECT_THAT(Faults(nested(64)), StartsWith("c.yaml:1:2: unknown: unknown"));
  EXPECT_THAT(Faults(nested(65)),
              HasSubstr("c.yaml:1:74: nested deeper than 64 levels"));
  EXPECT_THAT(Faults("a: [" + Repeat("{a: [", 5000)),
              testing::MatchesRegex("c.yaml:1:[0-9]+: nested deeper than 64 "
                                    "levels"));
  // Aliases to what was left out are left out.
  EXPECT_THAT(Faults("map: " + std::string(63, '[') + "[&x [y]]" +
                     std::string(63, ']') + "\nlist: *x\n"),
              HasSubstr("nested deeper than 64 levels"));
}

TEST(StrictYamlHostileTest, ManyFaultsAreCutTo100) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "unknown" + std::to_string(i) + ": 1\n";
  const std::string faults = Faults(text);
  EXPECT_EQ(std::count(faults.begin(), faults.end(), '\n'), 100);
  EXPECT_THAT(faults, testing::EndsWith("\nc.yaml: and 900 more faults"));
}

TEST(StrictYamlHostileTest, LongTextIsRefused) {
  const std::string longest = "a: " + std::string((1 << 20) - 3, 'x');
  EXPECT_EQ(Faults(longest), "");
  EXPECT_EQ(Faults(longest + "x"),
            "c.yaml:1:1: 1048577 bytes long; at most 1048576 are read");
}

TEST(StrictYamlHostileTest, LongTextWhereItIsExpected) {
  const std::string text = Repeat("# comment\n", 2 << 20) + "a: b\n";
  StrictYaml yaml("c.yaml", text, text.size());
  std::string a;
  EXPECT_TRUE(yaml.Root().String("a", &a));
  EXPECT_TRUE(yaml.Finish().ok()) << yaml.Finish();
  EXPECT_EQ(a, "b");
}

// What takes the square of its length takes many seconds here.
TEST(StrictYamlHostileTest, ManyOfAKindTakeTheirTimeAlone) {
  constexpr size_t kBytes = 1 << 18;
  std::string different;
  for (int i = 0; different.size() < kBytes; ++i)
    different += "k" + std::to_string(i) + ":\n";
  for (const std::string& text :
       {different, Repeat("k: 1\n", kBytes), Repeat("- a\n", kBytes),
        "list:\n" + Repeat("- {a: 1}\n", kBytes - 100), Repeat("? ", kBytes),
        "[" + Repeat("a,", kBytes - 2) + "]"}) {
    const auto start = std::chrono::steady_clock::now();
    Faults(text.substr(0, kBytes));
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(20))
        << text.substr(0, 20);
  }
}

TEST(StrictYamlHostileTest, RepeatedPiecesNeitherCrashNorHang) {
  for (const std::string_view piece :
       {"[",      "{",    "- ",      "? ",  ": ",      "a: ",    "&a ",
        "*a ",    "!",    "!a ",     "'",   "\"",      "|\n",    ">\n",
        "#\n",    " ",    "\t",      "\n",  "%",       "%A\n",   "---\n",
        "...\n",  "a",    "- a\n",   "[],", "{},",     "&a a\n", "- &a\n",
        "{a: ",   "[a, ", "? a\n",   "-\n", "-\n -\n", "a:\n",   "<<: ",
        "!!str ", "'a' ", ",",       "]",   "[?",      "[:",     "{:",
        "a,",     "\r",   "\xc3\xa9"}) {
    const auto start = std::chrono::steady_clock::now();
    Faults(Repeat(piece, 1 << 14));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5))
        << piece;
  }
}

TEST(StrictYamlHostileTest, MutatedDocumentsNeitherCrashNorHang) {
  const std::string kSeed =
      "# c\na: info\nlist:\n  - a: b\n    c: [\"1017\", 15b3]\n  - &x\n"
      "    a: 'b'\nmap: {map: {a: ~}}\nb: |\n  two\n   lines\n"
      "strings: [\n\t\"x\" ]\n? y\n: *x\n";
  constexpr std::string_view kSpecial = "\n  \t-:?,[]{}#&*!|>'\"%@\\~<a1.\r";
  std::mt19937 random(1);
  const auto below = [&](size_t limit) { return random() % limit; };
  for (int i = 0; i < 3000; ++i) {
    std::string text = kSeed;
    for (size_t edits = 1 + below(10); edits > 0; --edits) {
      const size_t place = below(text.size() + 1);
      if (below(3) == 0) {
        text.erase(place, below(8));
      } else if (below(2) == 0) {
        text.insert(place, 1 + below(3), kSpecial[below(kSpecial.size())]);
      } else {
        text.insert(place, kSeed.substr(below(kSeed.size()), below(16)));
      }
    }
    Faults(text);
  }
}

}  // namespace
}  // namespace purser::base
