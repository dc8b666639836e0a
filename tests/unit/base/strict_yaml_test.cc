// SPDX-License-Identifier: Apache-2.0
#include "base/strict_yaml.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::base {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// What Finish() says after `read` has read `text`, "" for OK.
template <typename Read>
std::string Faults(std::string_view text, Read read) {
  StrictYaml yaml("c.yaml", text);
  read(yaml.Root());
  const absl::Status status = yaml.Finish();
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(StrictYamlTest, AMapStandsForAListOfOne) {
  std::vector<std::string> names;
  auto read = [&](YamlMap root) {
    names.clear();
    for (YamlMap map : root.MapOrMaps("all"))
      map.String("name", &names.emplace_back());
  };
  EXPECT_EQ(Faults("all: {name: a}", read), "");
  EXPECT_THAT(names, ElementsAre("a"));
  EXPECT_EQ(Faults("all: [{name: a}, {name: b}]", read), "");
  EXPECT_THAT(names, ElementsAre("a", "b"));
  EXPECT_EQ(Faults("other: 1",
                   [&](YamlMap root) {
                     read(root);
                     EXPECT_EQ(root.Text("other"), "1");
                     EXPECT_EQ(root.Text("all"), "");
                   }),
            "");
  EXPECT_THAT(names, testing::IsEmpty());
  EXPECT_EQ(Faults("all: x", read),
            "c.yaml:1:6: all: must be a list of maps, not \"x\"");
}

TEST(StrictYamlTest, ReadsAWholeDocument) {
  std::string level, quoted;
  bool flag = false;
  uint64_t port = 0, budget = 0;
  double fraction = 0;
  milliseconds period{};
  std::vector<std::string> vendors, names;
  EXPECT_EQ(
      Faults("# a comment\n"
             "logLevel: info\n"
             "quoted: \"a: b # c\"\n"
             "flag: true\n"
             "port: 9836\n"
             "budget: 64Mi\n"
             "fraction: 50%\n"
             "period: 5m\n"
             "selectors:\n"
             "  vendors: [\"15b3\", 1017]\n"
             "pools:\n"
             "  - name: a\n"
             "  - name: b\n",
             [&](YamlMap root) {
               EXPECT_TRUE(root.String("logLevel", &level));
               EXPECT_TRUE(root.String("quoted", &quoted));
               EXPECT_TRUE(root.Bool("flag", &flag));
               EXPECT_TRUE(root.Uint("port", 1, 65535, &port));
               EXPECT_TRUE(root.Bytes("budget", &budget));
               EXPECT_TRUE(root.Fraction("fraction", &fraction));
               EXPECT_TRUE(root.Duration("period", &period));
               EXPECT_TRUE(root.Map("selectors").Strings("vendors", &vendors));
               for (YamlMap pool : root.Maps("pools")) {
                 names.emplace_back(pool.path());
                 EXPECT_TRUE(pool.String("name", &names.emplace_back()));
               }
             }),
      "");
  EXPECT_EQ(level, "info");
  EXPECT_EQ(quoted, "a: b # c");
  EXPECT_TRUE(flag);
  EXPECT_EQ(port, 9836u);
  EXPECT_EQ(budget, 64u << 20);
  EXPECT_EQ(fraction, 0.5);
  EXPECT_EQ(period, std::chrono::minutes(5));
  EXPECT_THAT(vendors, ElementsAre("15b3", "1017"));
  EXPECT_THAT(names, ElementsAre("pools[0]", "a", "pools[1]", "b"));
}

TEST(StrictYamlTest, ReadsJsonWithTabs) {
  std::string name;
  uint64_t max = 0;
  EXPECT_EQ(Faults("{\n\t\"configList\": [{\n\t\t\"resourceName\": \"a\\/b\","
                   "\n\t\t\"rdmaHcaMax\": 1000\n\t}]\n}\n",
                   [&](YamlMap root) {
                     for (YamlMap item : root.Maps("configList")) {
                       item.String("resourceName", &name);
                       item.Uint("rdmaHcaMax", 1, 5000, &max);
                     }
                   }),
            "");
  EXPECT_EQ(name, "a/b");
  EXPECT_EQ(max, 1000u);
}

TEST(StrictYamlTest, ReadsJsonOnOneLongLine) {
  std::string text = "{\"pools\": [";
  for (int i = 0; i < 500; ++i)
    text += (i == 0 ? "" : ",") +
            std::string("{\"name\":\"p\",\"ids\":[\"15b3\",\"1017\"]}");
  size_t pools = 0;
  EXPECT_EQ(Faults(text + "]}",
                   [&](YamlMap root) {
                     for (YamlMap pool : root.Maps("pools")) {
                       std::string name;
                       std::vector<std::string> ids;
                       pools += pool.String("name", &name) &&
                                        pool.Strings("ids", &ids) &&
                                        ids.size() == 2
                                    ? 1
                                    : 0;
                     }
                   }),
            "");
  EXPECT_EQ(pools, 500u);
}

TEST(StrictYamlTest, EmptyDocumentsAreEmptyMaps) {
  for (const char* text :
       {"", "\n", "# only a comment\n", "---\n", "---\n...\n", "~", "null\n",
        "{}", "   ", "\xef\xbb\xbf", "---\n# a\n---\n"}) {
    std::string value = "default";
    EXPECT_EQ(Faults(text,
                     [&](YamlMap root) {
                       EXPECT_FALSE(root.Has("key"));
                       EXPECT_FALSE(root.String("key", &value));
                       EXPECT_EQ(root.path(), "");
                     }),
              "")
        << text;
    EXPECT_EQ(value, "default");
  }
}

TEST(StrictYamlTest, AbsentAndNullLeaveTheDefault) {
  for (const char* text : {"a: 1\n", "a: 1\nk:\n", "a: 1\nk: ~\n",
                           "a: 1\nk: null\n", "a: 1\nk: NULL # x\n"}) {
    std::string string = "s";
    bool flag = true;
    uint64_t number = 7;
    double fraction = 0.25;
    milliseconds duration{9};
    std::vector<std::string> strings = {"x"};
    EXPECT_EQ(Faults(text,
                     [&](YamlMap root) {
                       EXPECT_TRUE(root.Has("a"));
                       EXPECT_FALSE(root.Has("k"));
                       EXPECT_FALSE(root.String("k", &string));
                       EXPECT_FALSE(root.Bool("k", &flag));
                       EXPECT_FALSE(root.Uint("k", 0, 1, &number));
                       EXPECT_FALSE(root.Bytes("k", &number));
                       EXPECT_FALSE(root.Fraction("k", &fraction));
                       EXPECT_FALSE(root.Duration("k", &duration));
                       EXPECT_FALSE(root.Strings("k", &strings));
                       EXPECT_TRUE(root.Maps("k").empty());
                       EXPECT_FALSE(root.Map("k").Has("x"));
                       EXPECT_EQ(root.Map("k").path(), "k");
                     }),
              "")
        << text;
    EXPECT_EQ(string, "s");
    EXPECT_TRUE(flag);
    EXPECT_EQ(number, 7u);
    EXPECT_EQ(fraction, 0.25);
    EXPECT_EQ(duration, milliseconds(9));
    EXPECT_THAT(strings, ElementsAre("x"));
  }
}

TEST(StrictYamlTest, Strings) {
  const struct {
    std::string text, value;
  } kCases[] = {
      {"k: plain text", "plain text"},
      {"k: 0123", "0123"},
      {"k: yes", "yes"},
      {"k: 1e3", "1e3"},
      {"k: \"\"", ""},
      {"k: 'it''s'", "it's"},
      {"k: \"caf\\u00e9\"", "caf\xc3\xa9"},
      {"k: \"null\"", "null"},
      {"k: !!str 5", "5"},
      {"k: |\n  two\n  lines\n", "two\nlines\n"},
      {"k: >-\n  one\n  line\n", "one line"},
  };
  for (const auto& c : kCases) {
    std::string value;
    EXPECT_EQ(Faults(c.text, [&](YamlMap r) { r.String("k", &value); }), "");
    EXPECT_EQ(value, c.value) << c.text;
  }
}

TEST(StrictYamlTest, Booleans) {
  const std::string kTypes = "c.yaml:1:4: k: must be true or false, not ";
  const struct {
    std::string text, faults;
    bool value;
  } kCases[] = {
      {"k: true", "", true},
      {"k: True", "", true},
      {"k: TRUE", "", true},
      {"k: false", "", false},
      {"k: False", "", false},
      {"k: FALSE", "", false},
      {"k: yes", kTypes + "\"yes\"", false},
      {"k: no", kTypes + "\"no\"", false},
      {"k: on", kTypes + "\"on\"", false},
      {"k: y", kTypes + "\"y\"", false},
      {"k: 1", kTypes + "\"1\"", false},
      {"k: tRue", kTypes + "\"tRue\"", false},
      {"k: \"true\"", kTypes + "\"true\": remove the quotes", false},
      {"k: !!str true", kTypes + "\"true\": remove the quotes", false},
      {"k: []", kTypes + "a list", false},
      {"k: {}", kTypes + "a map", false},
  };
  for (const auto& c : kCases) {
    bool value = !c.value;
    bool good = false;
    EXPECT_EQ(Faults(c.text, [&](YamlMap r) { good = r.Bool("k", &value); }),
              c.faults);
    EXPECT_EQ(good, c.faults.empty());
    EXPECT_EQ(value, good ? c.value : !c.value) << c.text;
  }
}

TEST(StrictYamlTest, WholeNumbers) {
  const std::string kRange =
      "c.yaml:1:4: k: must be a whole number from 1 to 65535, not ";
  const struct {
    std::string text, faults;
    uint64_t value;
  } kCases[] = {
      {"k: 1", "", 1},
      {"k: 65535", "", 65535},
      {"k: 0", kRange + "\"0\"", 0},
      {"k: 65536", kRange + "\"65536\"", 0},
      {"k: -1", kRange + "\"-1\"", 0},
      {"k: +1", kRange + "\"+1\"", 0},
      {"k: 010", kRange + "\"010\"", 0},
      {"k: 0x10", kRange + "\"0x10\"", 0},
      {"k: 0o10", kRange + "\"0o10\"", 0},
      {"k: 1_000", kRange + "\"1_000\"", 0},
      {"k: 1.0", kRange + "\"1.0\"", 0},
      {"k: 1e3", kRange + "\"1e3\"", 0},
      {"k: .inf", kRange + "\".inf\"", 0},
      {"k: 18446744073709551615", kRange + "\"18446744073709551615\"", 0},
      {"k: 18446744073709551616", kRange + "\"18446744073709551616\"", 0},
      {"k: " + std::string(100, '9'),
       kRange + "\"" + std::string(60, '9') + "\"...", 0},
      {"k: \"5\"", kRange + "\"5\": remove the quotes", 0},
      {"k: '0'", kRange + "\"0\"", 0},
      {"k: true", kRange + "\"true\"", 0},
      {"k: 5 apples", kRange + "\"5 apples\"", 0},
      {"k: \"\"", kRange + "\"\"", 0},
      {"k: [1]",
       "c.yaml:1:4: k: must be a whole number from 1 to 65535, not "
       "a list",
       0},
      {"k: {a: 1}",
       "c.yaml:1:4: k: must be a whole number from 1 to 65535, "
       "not a map",
       0},
  };
  for (const auto& c : kCases) {
    uint64_t value = 42;
    bool good = false;
    EXPECT_EQ(Faults(c.text,
                     [&](YamlMap r) { good = r.Uint("k", 1, 65535, &value); }),
              c.faults);
    EXPECT_EQ(good, c.faults.empty());
    EXPECT_EQ(value, good ? c.value : 42) << c.text;
  }
}

TEST(StrictYamlTest, LargestNumbers) {
  uint64_t value = 0;
  EXPECT_EQ(Faults("k: 18446744073709551615",
                   [&](YamlMap r) { r.Uint("k", 0, UINT64_MAX, &value); }),
            "");
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_EQ(Faults("k: 18446744073709551616",
                   [&](YamlMap r) { r.Uint("k", 0, UINT64_MAX, &value); }),
            "c.yaml:1:4: k: must be a whole number from 0 to "
            "18446744073709551615, not \"18446744073709551616\"");
}

TEST(StrictYamlTest, Fractions) {
  const struct {
    std::string text;
    double value;  // 0: a fault
  } kCases[] = {
      {"k: 0.5", 0.5},     {"k: 1", 1},      {"k: 50%", 0.5},
      {"k: \"50%\"", 0.5}, {"k: 100%", 1},   {"k: 12.5%", 0.125},
      {"k: 1e-1", 0.1},    {"k: 0", 0},      {"k: 0%", 0},
      {"k: 1.01", 0},      {"k: 101%", 0},   {"k: -0.5", 0},
      {"k: half", 0},      {"k: nan", 0},    {"k: .nan", 0},
      {"k: inf", 0},       {"k: 50 %", 0},   {"k: \"%\"", 0},
      {"k: 0.5x", 0},      {"k: 1e-999", 0}, {"k: []", 0},
  };
  for (const auto& c : kCases) {
    double value = 0;
    const std::string faults =
        Faults(c.text, [&](YamlMap r) { r.Fraction("k", &value); });
    EXPECT_EQ(value, c.value) << c.text;
    if (c.value == 0) {
      EXPECT_THAT(faults, testing::StartsWith(
                              "c.yaml:1:4: k: must be a fraction above "
                              "0 and up to 1, such as 0.5 or 50%, not "))
          << c.text;
    } else {
      EXPECT_EQ(faults, "") << c.text;
    }
  }
}

TEST(StrictYamlTest, Bytes) {
  uint64_t value = 0;
  EXPECT_EQ(Faults("k: 1.5Gi", [&](YamlMap r) { r.Bytes("k", &value); }), "");
  EXPECT_EQ(value, 1610612736u);
  EXPECT_EQ(Faults("k: \"64Mi\"", [&](YamlMap r) { r.Bytes("k", &value); }),
            "");
  EXPECT_EQ(value, 67108864u);
  EXPECT_EQ(Faults("k: 64MB", [&](YamlMap r) { r.Bytes("k", &value); }),
            "c.yaml:1:4: k: \"64MB\" is not a quantity: write a number of "
            "bytes such as \"64Mi\", \"1.5Gi\" or \"67108864\"");
  EXPECT_EQ(Faults("k: [1]", [&](YamlMap r) { r.Bytes("k", &value); }),
            "c.yaml:1:4: k: must be a number of bytes such as 64Mi, not a "
            "list");
  EXPECT_EQ(value, 67108864u);
}

TEST(StrictYamlTest, Durations) {
  const struct {
    std::string text;
    int64_t milliseconds;  // -1: a fault
  } kCases[] = {
      {"k: 60s", 60000},
      {"k: 500ms", 500},
      {"k: 5m", 300000},
      {"k: 1h30m", 5400000},
      {"k: 8760h", 31536000000},
      {"k: 60", 60000},
      {"k: 1.5", 1500},
      {"k: 1.5s", 1500},
      {"k: 0", 0},
      {"k: \"5m\"", 300000},
      {"k: 1000000ns", 1},
      {"k: 8761h", -1},
      {"k: inf", -1},
      {"k: -1s", -1},
      {"k: -1", -1},
      {"k: 1us", -1},
      {"k: 1.0005s", -1},
      {"k: 5 m", -1},
      {"k: 5min", -1},
      {"k: 1d", -1},
      {"k: s", -1},
      {"k: .", -1},
      {"k: soon", -1},
      {"k: 99999999999999999999999h", -1},
      {"k: {}", -1},
  };
  for (const auto& c : kCases) {
    milliseconds value{-1};
    const std::string faults =
        Faults(c.text, [&](YamlMap r) { r.Duration("k", &value); });
    EXPECT_EQ(value.count(), c.milliseconds) << c.text;
    if (c.milliseconds < 0) {
      EXPECT_THAT(faults,
                  testing::StartsWith("c.yaml:1:4: k: must be a duration of "
                                      "whole milliseconds from 0 to 8760h, "
                                      "such as 60s, 500ms or 5m, not "))
          << c.text;
    } else {
      EXPECT_EQ(faults, "") << c.text;
    }
  }
}

TEST(StrictYamlTest, ListsOfStrings) {
  std::vector<std::string> value = {"before"};
  EXPECT_EQ(Faults("k: []", [&](YamlMap r) { r.Strings("k", &value); }), "");
  EXPECT_TRUE(value.empty());
  value = {"before"};
  EXPECT_EQ(Faults("k:\n- a\n- [b]\n-\n- {c: d}\n- ''\n",
                   [&](YamlMap r) { EXPECT_FALSE(r.Strings("k", &value)); }),
            "c.yaml:2:1: k[2]: must be a string, not null\n"
            "c.yaml:3:3: k[1]: must be a string, not a list\n"
            "c.yaml:5:3: k[3]: must be a string, not a map");
  EXPECT_THAT(value, ElementsAre("before"));
  EXPECT_EQ(Faults("k: a", [&](YamlMap r) { r.Strings("k", &value); }),
            "c.yaml:1:4: k: must be a list of strings, not \"a\"");
  EXPECT_THAT(value, ElementsAre("before"));
}

TEST(StrictYamlTest, ListsOfMaps) {
  int visited = 0;
  EXPECT_EQ(Faults("k:\n- a: 1\n- b\n-\n- [a]\n- {}\n",
                   [&](YamlMap r) {
                     for (YamlMap map : r.Maps("k")) {
                       map.Has("a");
                       ++visited;
                     }
                   }),
            "c.yaml:2:1: k[2]: must be a map, not null\n"
            "c.yaml:3:3: k[1]: must be a map, not \"b\"\n"
            "c.yaml:5:3: k[3]: must be a map, not a list");
  EXPECT_EQ(visited, 2);
  EXPECT_EQ(Faults("k: {a: 1}", [](YamlMap r) { r.Maps("k"); }),
            "c.yaml:1:4: k: must be a list of maps, not a map");
}

TEST(StrictYamlTest, UnknownKeysSuggest) {
  const auto read = [](YamlMap root) {
    root.Has("logLevel");
    root.Has("port");
    root.Map("selectors").Has("vendors");
    for (YamlMap pool : root.Maps("pools")) pool.Has("rdmaHcaMax");
  };
  EXPECT_EQ(Faults("loglevel: info\n", read),
            "c.yaml:1:1: loglevel: unknown key (did you mean \"logLevel\"?)");
  EXPECT_EQ(Faults("selectors:\n  vendor: []\n", read),
            "c.yaml:2:3: selectors.vendor: unknown key (did you mean "
            "\"vendors\"?)");
  EXPECT_EQ(
      Faults("pools:\n  - rdmaHcaMax: 1\n  - {a: b, rdmaHcMax: 1}\n", read),
      "c.yaml:3:6: pools[1].a: unknown key: there are rdmaHcaMax\n"
      "c.yaml:3:12: pools[1].rdmaHcMax: unknown key (did you mean "
      "\"rdmaHcaMax\"?)");
  EXPECT_EQ(Faults("verbosity: 3\n", read),
            "c.yaml:1:1: verbosity: unknown key: there are logLevel, pools, "
            "port, selectors");
  EXPECT_EQ(Faults("a: 1\n", [](YamlMap) {}),
            "c.yaml:1:1: a: unknown key: none is expected here");
}

TEST(StrictYamlTest, ManyKnownKeysAreListedInPart) {
  const std::string faults = Faults("zzzzzzzzzz: 1\n", [](YamlMap root) {
    for (int i = 0; i < 30; ++i) root.Has("key" + std::to_string(100 + i));
  });
  EXPECT_THAT(faults, testing::EndsWith(", key119, ..."));
}

TEST(StrictYamlTest, RepeatedKeys) {
  std::string value;
  EXPECT_EQ(Faults("a: 1\nb: {c: 1, c: 2}\na: 2\n\"a\": 3\n",
                   [&](YamlMap root) {
                     root.String("a", &value);
                     root.Map("b").Has("c");
                   }),
            "c.yaml:2:11: \"c\" is given twice, first on line 2: remove one\n"
            "c.yaml:3:1: \"a\" is given twice, first on line 1: remove one\n"
            "c.yaml:4:1: \"a\" is given twice, first on line 1: remove one");
  EXPECT_EQ(value, "1");
}

// Of more than are compared one with the other.
TEST(StrictYamlTest, RepeatedKeysOfALargeMap) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const auto all = [](YamlMap root) {
    for (int i = 0; i < 60; ++i) root.Has("key" + std::to_string(i));
  };
  EXPECT_EQ(Faults(text, all), "");
  EXPECT_EQ(
      Faults(text + "key7: 2\n", all),
      "c.yaml:61:1: \"key7\" is given twice, first on line 8: remove one");
}

// U+FEFF, which some editors begin a file with, is no part of it.
TEST(StrictYamlTest, AByteOrderMark) {
  std::string value;
  const auto read = [&value](YamlMap root) { root.String("a", &value); };
  EXPECT_EQ(Faults("\xef\xbb\xbf"
                   "a: x\n",
                   read),
            "");
  EXPECT_EQ(value, "x");
  EXPECT_EQ(Faults("\xef\xbb\xbf"
                   "a: x\nb: y\n",
                   read),
            "c.yaml:2:1: b: unknown key (did you mean \"a\"?)");
  EXPECT_EQ(Faults("\xef\xbb\xbf", read), "");
  EXPECT_THAT(Faults("\xef\xbb", read),
              testing::HasSubstr("c.yaml:1:1: byte 0xef"));
}

TEST(StrictYamlTest, FaultsOfTheCaller) {
  EXPECT_EQ(Faults("pools:\n  - name: a\n    max:\n  - {}\nport: 1\n",
                   [](YamlMap root) {
                     root.Fault("port", "is taken");
                     root.Fault("missing", "is required");
                     for (YamlMap pool : root.Maps("pools")) {
                       pool.Fault("name", "must …");
                       pool.Fault("max", "is required");
                     }
                     root.Map("none").Fault("x", "is required");
                   }),
            "c.yaml:1:1: missing: is required\n"
            "c.yaml:1:1: none.x: is required\n"
            "c.yaml:2:11: pools[0].name: must …\n"
            "c.yaml:3:5: pools[0].max: is required\n"
            "c.yaml:4:5: pools[1].name: must …\n"
            "c.yaml:4:5: pools[1].max: is required\n"
            "c.yaml:5:7: port: is taken");
}

TEST(StrictYamlTest, PlacesAreThoseOfFaults) {
  StrictYaml yaml("c.yaml",
                  "name: caf\xc3\xa9\nmaps:\n  - {\xc3\xa9: b, c: d}\n");
  YamlMap root = yaml.Root();
  EXPECT_EQ(root.Place("name").column, 7);
  EXPECT_EQ(root.Place("absent").line, 1);
  const std::vector<YamlMap> maps = root.Maps("maps");
  ASSERT_EQ(maps.size(), 1u);
  YamlMap map = maps[0];
  EXPECT_EQ(map.Place("c").line, 3);
  EXPECT_EQ(map.Place("c").column, 15);  // in characters
  EXPECT_EQ(map.Place("absent").column, 5);
  EXPECT_EQ(map.Place().column, 5);
  map.Fault("c", "is wrong");
  map.Has("\xc3\xa9");
  EXPECT_EQ(yaml.Finish().message(), "c.yaml:3:15: maps[0].c: is wrong");
}

TEST(StrictYamlTest, AllFaultsAtOnceInDocumentOrder) {
  uint64_t port = 0, max = 0;
  bool flag = false;
  EXPECT_EQ(Faults("port: 70000\n"
                   "logLevl: info\n"
                   "flag: yes\n"
                   "flag: no\n"
                   "pools:\n"
                   "  - rdmaHcaMax: many\n"
                   "    nam: x\n"
                   "  - 5\n"
                   "selectors: []\n",
                   [&](YamlMap root) {
                     YamlMap selectors = root.Map("selectors");
                     selectors.Fault("vendors", "is required");  // explained
                     selectors.Map("x").Fault("y", "is required");
                     for (YamlMap pool : root.Maps("pools")) {
                       pool.Uint("rdmaHcaMax", 1, 5000, &max);
                       pool.Uint("rdmaHcaMax", 1, 5000, &max);
                       pool.Has("name");
                     }
                     root.Bool("flag", &flag);
                     root.Uint("port", 1, 65535, &port);
                     root.Has("logLevel");
                   }),
            "c.yaml:1:7: port: must be a whole number from 1 to 65535, not "
            "\"70000\"\n"
            "c.yaml:2:1: logLevl: unknown key (did you mean \"logLevel\"?)\n"
            "c.yaml:3:7: flag: must be true or false, not \"yes\"\n"
            "c.yaml:4:1: \"flag\" is given twice, first on line 3: remove one\n"
            "c.yaml:6:17: pools[0].rdmaHcaMax: must be a whole number from 1 "
            "to 5000, not \"many\"\n"
            "c.yaml:7:5: pools[0].nam: unknown key (did you mean \"name\"?)\n"
            "c.yaml:8:5: pools[1]: must be a map, not \"5\"\n"
            "c.yaml:9:12: selectors: must be a map, not a list");
}

TEST(StrictYamlTest, FinishCanBeCalledAgain) {
  StrictYaml yaml("c.yaml", "a: 1\n");
  YamlMap root = yaml.Root();
  EXPECT_FALSE(yaml.Finish().ok());
  EXPECT_EQ(yaml.Finish(), yaml.Finish());
  root.Has("a");
  EXPECT_TRUE(yaml.Finish().ok());
}

TEST(StrictYamlTest, MapsOutliveTheReader) {
  auto yaml = std::make_unique<StrictYaml>("c.yaml", "a: b\n");
  YamlMap root = yaml->Root();
  yaml.reset();
  std::string value;
  EXPECT_TRUE(root.String("a", &value));
  EXPECT_EQ(value, "b");
}

}  // namespace
}  // namespace purser::base
