// SPDX-License-Identifier: Apache-2.0
//
// StrictYaml's dialect kGoJson, held against what encoding/json does.
#include <string>
#include <vector>

#include "base/json_tree.h"
#include "base/strict_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::base {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Outcome {
  std::string faults;  // "": none
  std::vector<std::string> warnings;
};

template <typename Read>
Outcome Reading(std::string_view text, Read read) {
  StrictYaml json("c.json", text, YamlDialect::kGoJson);
  read(json.Root());
  return {std::string(json.Finish().message()), json.Warnings()};
}

std::string Syntax(std::string_view text) {
  return Reading(text, [](YamlMap) {}).faults;
}

TEST(GoJsonTest, AByteOrderMarkIsNoPartOfTheText) {
  std::string name;
  const Outcome outcome =
      Reading("\xef\xbb\xbf{\"name\": \"a\"}",
              [&name](YamlMap root) { root.String("name", &name); });
  EXPECT_EQ(outcome.faults, "");
  EXPECT_EQ(name, "a");
}

TEST(GoJsonTest, ReadsValuesOfEveryKind) {
  std::string name;
  uint64_t number = 0;
  bool flag = false;
  std::vector<std::string> list, names;
  const Outcome outcome = Reading(
      "{\"name\": \"\\u0041\\n\\\"\\ud83d\\ude00\", \"number\": 7, \"flag\": "
      "true,\n\t\"list\": [\"a\", null],\r\n \"pools\" : [{\"name\":\"x\"}, "
      "null], \"absent\": null}",
      [&](YamlMap root) {
        EXPECT_TRUE(root.String("name", &name));
        EXPECT_TRUE(root.Uint("number", 0, 10, &number));
        EXPECT_TRUE(root.Bool("flag", &flag));
        EXPECT_TRUE(root.Strings("list", &list));
        for (YamlMap pool : root.Maps("pools"))
          pool.String("name", &names.emplace_back());
        EXPECT_FALSE(root.Has("absent"));
      });
  EXPECT_EQ(outcome.faults, "");
  EXPECT_THAT(outcome.warnings, IsEmpty());
  EXPECT_EQ(name, "A\n\"\xf0\x9f\x98\x80");
  EXPECT_EQ(number, 7u);
  EXPECT_TRUE(flag);
  EXPECT_THAT(list, ElementsAre("a", ""));
  EXPECT_THAT(names, ElementsAre("x", ""));
}

TEST(GoJsonTest, ReadsMapsOfStringsUnderAnyKeys) {
  YamlMap::StringMaps maps = {{"before", {}}};
  auto read = [&](YamlMap root) { root.MapsOfStrings("m", &maps); };
  const Outcome outcome = Reading(
      "{\"m\": {\"*\": {\"a\": \"1\", \"A\": null}, \"x\": null, \"y\": "
      "{\"b\": \"1\"}, \"y\": {\"c\": \"2\"}}}",
      read);
  EXPECT_EQ(outcome.faults, "");
  const YamlMap::StringMaps expected = {
      {"*", {{"a", "1"}, {"A", ""}}}, {"x", {}}, {"y", {{"c", "2"}}}};
  EXPECT_EQ(maps, expected);
  for (const char* bad :
       {"{\"m\": []}", "{\"m\": {\"x\": 1}}", "{\"m\": {\"x\": {\"a\": 1}}}",
        "{\"m\": {\"x\": {\"a\": {}}}}"}) {
    EXPECT_THAT(Reading(bad, read).faults, HasSubstr("c.json:1:")) << bad;
    EXPECT_EQ(maps, expected);
  }
}

TEST(GoJsonTest, KeysMatchInAnyCase) {
  uint64_t number = 0;
  const Outcome outcome = Reading("{\"RDMAHCAMAX\": 5}", [&](YamlMap root) {
    EXPECT_TRUE(root.Uint("rdmaHcaMax", 0, 10, &number));
  });
  EXPECT_EQ(outcome.faults, "");
  EXPECT_THAT(outcome.warnings, IsEmpty());
  EXPECT_EQ(number, 5u);
}

TEST(GoJsonTest, UnknownKeysAreWarningsWithASuggestion) {
  std::string name;
  const Outcome outcome =
      Reading("{\n  \"nam\": \"x\",\n  \"other\": {\"deep\": [1]}\n}",
              [&](YamlMap root) { root.String("name", &name); });
  EXPECT_EQ(outcome.faults, "");
  EXPECT_THAT(outcome.warnings,
              ElementsAre("c.json:2:3: nam: unknown key (did you mean "
                          "\"name\"?); it is ignored",
                          "c.json:3:3: other: unknown key: there are name; it "
                          "is ignored"));
}

TEST(GoJsonTest, OfRepeatedKeysTheLastCountsAndMapsAreMerged) {
  std::string name;
  std::vector<std::string> vendors, drivers;
  const Outcome outcome = Reading(
      "{\"name\": \"a\", \"Name\": \"b\", \"name\": null,\n"
      " \"selectors\": {\"vendors\": [\"x\"], \"drivers\": [\"y\"]},\n"
      " \"selectors\": {\"drivers\": [\"z\"]}}",
      [&](YamlMap root) {
        root.String("name", &name);
        YamlMap selectors = root.Map("selectors");
        selectors.Strings("vendors", &vendors);
        selectors.Strings("drivers", &drivers);
      });
  EXPECT_EQ(outcome.faults, "");
  EXPECT_EQ(name, "b");
  EXPECT_THAT(vendors, ElementsAre("x"));
  EXPECT_THAT(drivers, ElementsAre("z"));
  EXPECT_THAT(outcome.warnings,
              ElementsAre("c.json:1:15: Name: is given twice; the last one "
                          "counts",
                          "c.json:1:28: name: is given twice; the last one "
                          "counts",
                          "c.json:3:2: selectors: is given twice; the last one "
                          "counts",
                          "c.json:3:16: selectors.drivers: is given twice; the "
                          "last one counts"));
}

TEST(GoJsonTest, TypesAreNotConverted) {
  std::string name;
  uint64_t number = 0;
  std::vector<std::string> list;
  bool flag = false;
  const Outcome outcome = Reading(
      "{\"name\": 5, \"number\": \"5\", \"list\": [5], \"flag\": \"true\", "
      "\"fraction\": 1.0, \"map\": {}, \"array\": [[]]}",
      [&](YamlMap root) {
        EXPECT_FALSE(root.String("name", &name));
        EXPECT_FALSE(root.Uint("number", 0, 10, &number));
        EXPECT_FALSE(root.Strings("list", &list));
        EXPECT_FALSE(root.Bool("flag", &flag));
        EXPECT_FALSE(root.Uint("fraction", 0, 10, &number));
        EXPECT_FALSE(root.String("map", &name));
        EXPECT_FALSE(root.Strings("array", &list));
      });
  EXPECT_THAT(outcome.faults, HasSubstr("c.json:1:10: name: must be a string"));
  EXPECT_THAT(outcome.faults,
              HasSubstr("c.json:1:23: number: must be a whole"));
  EXPECT_THAT(outcome.faults,
              HasSubstr("c.json:1:37: list[0]: must be a string"));
  EXPECT_THAT(outcome.faults, HasSubstr("c.json:1:49: flag: must be true"));
  EXPECT_THAT(outcome.faults, HasSubstr("c.json:1:69: fraction: must be a"));
  EXPECT_THAT(outcome.faults, HasSubstr("c.json:1:81: map: must be a string"));
  EXPECT_THAT(outcome.faults,
              HasSubstr("c.json:1:95: array[0]: must be a string"));
}

TEST(GoJsonTest, SyntaxFaultsHaveLineAndColumn) {
  EXPECT_EQ(Syntax("{\"a\": 1,\n \"b\": }"),
            "c.json:2:7: not JSON: Invalid value.");
  EXPECT_THAT(Syntax("{\"a\": 1,}"), HasSubstr("c.json:1:9: not JSON"));
  EXPECT_THAT(Syntax("{\"a\": 1} x"), HasSubstr("c.json:1:10: not JSON"));
  EXPECT_THAT(Syntax("{'a': 1}"), HasSubstr("not JSON"));
  EXPECT_THAT(Syntax("{\"a\": 1 // comment\n}"), HasSubstr("not JSON"));
  EXPECT_THAT(Syntax("{\"a\": 01}"), HasSubstr("not JSON"));
  EXPECT_THAT(Syntax("{\"a\": \"line\nbreak\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(Syntax(""), HasSubstr("not JSON"));
  EXPECT_THAT(Syntax(std::string_view("{}\0{}", 5)),
              HasSubstr("c.json:1:3: byte 0x00"));
  EXPECT_THAT(Syntax("[1]"), HasSubstr("must be a map"));
}

TEST(GoJsonTest, AColumnIsACharacter) {
  EXPECT_THAT(Syntax("{\"a\": \"\u00e4\u00f6\", x}"),
              HasSubstr("c.json:1:13: "));
  EXPECT_THAT(Syntax("\n{\"a\": \"\u00e4\"\n x}"), HasSubstr("c.json:3:2: "));
}

TEST(GoJsonTest, DepthAndLengthHaveLimits) {
  EXPECT_THAT(Syntax("{\"a\": " + std::string(64, '[')),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(Syntax(std::string(100'000, '[')),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(Syntax(std::string((1 << 20) + 1, ' ')),
              HasSubstr("at most 1048576 are read"));
}

TEST(GoJsonTest, MalformedUtf8IsReplaced) {
  std::string name;
  const Outcome outcome = Reading("{\"name\": \"a\xff\"}", [&](YamlMap root) {
    root.String("name", &name);
  });
  EXPECT_EQ(outcome.faults, "");
  EXPECT_EQ(name, "a\xef\xbf\xbd");
}

TEST(GoJsonTest, SoftenedFaultsAreWarnings) {
  std::vector<std::string> list;
  std::string name;
  bool failed = false;
  const Outcome outcome =
      Reading("{\"pool\": {\"selectors\": {\"list\": \"x\"}, \"name\": 5}}",
              [&](YamlMap root) {
                YamlMap pool = root.Map("pool");
                pool.SoftenFaults();
                EXPECT_FALSE(pool.has_softened_faults());
                pool.Map("selectors").Strings("list", &list);
                pool.HardenFaults();
                failed = pool.has_softened_faults();
                pool.String("name", &name);
              });
  EXPECT_TRUE(failed);
  EXPECT_THAT(outcome.warnings,
              ElementsAre(HasSubstr("pool.selectors.list: must be a list")));
  EXPECT_THAT(outcome.faults, HasSubstr("pool.name: must be a string"));
}

TEST(GoJsonTest, ManyRepeatedKeysAreNoMatter) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += "\"k\": 1, ";
  text += "\"k\": 2}";
  uint64_t number = 0;
  const Outcome outcome =
      Reading(text, [&](YamlMap root) { root.Uint("k", 0, 10, &number); });
  EXPECT_EQ(number, 2u);
  EXPECT_EQ(outcome.warnings.size(), 101u);
  EXPECT_EQ(outcome.warnings.back(), "c.json: and 49900 more warnings");
}

}  // namespace
}  // namespace purser::base
