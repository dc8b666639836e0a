// SPDX-License-Identifier: Apache-2.0
//
// The shared RDMA plugin's configuration files, side by side: what that plugin
// advertises on the node of peer_node.h, by its rules, and what Purser does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "plugin/config/unit_limit.h"
#include "tests/unit/plugin/peer_node.h"

namespace purser::plugin {
namespace {

constexpr const char* kRefused = "refused";
constexpr const char* kSame = nullptr;

struct Row {
  const char* what;
  std::string config;
  std::string peer;     // what that plugin advertises, or kRefused
  const char* purser;   // kSame, or what is different, and …
  const char* because;  // … why; else what Purser warns of or refuses for
};

// One entry of configList around its fields.
std::string One(const std::string& fields) {
  return "{\"configList\": [{" + fields + "}]}";
}
std::string Selecting(const std::string& selectors) {
  return One("\"resourceName\": \"a\", \"rdmaHcaMax\": 50, \"selectors\": {" +
             selectors + "}");
}

std::vector<Row> Forms() {
  return {
      {"README's example",
       R"({"periodicUpdateInterval": 300, "configList": [
           {"resourceName": "hca_shared_devices_a", "rdmaHcaMax": 1000,
            "selectors": {"vendors": ["15b3"], "deviceIDs": ["1017"]}},
           {"resourceName": "hca_shared_devices_b", "rdmaHcaMax": 500,
            "selectors": {"vendors": ["15b3"], "deviceIDs": ["1019"],
                          "ifNames": ["ib1"]}}]})",
       "rdma/hca_shared_devices_a=1000 rdma/hca_shared_devices_b=0", kSame, ""},
      {"the network operator's sample", Selecting(R"("vendors": ["15b3"])"),
       "rdma/a=50", kSame, ""},
      {"devices, the deprecated alias of ifNames",
       One(R"("resourceName": "a", "rdmaHcaMax": 50, "devices": ["ib0"])"),
       "rdma/a=50", kSame, "is deprecated"},
      {"devices beside empty selectors",
       One(R"("resourceName": "a", "rdmaHcaMax": 5, "devices": ["ib0"],
              "selectors": {"vendors": [], "ifNames": null})"),
       "rdma/a=5", kSame, "is deprecated"},
      {"devices and selectors",
       One(R"("resourceName": "a", "rdmaHcaMax": 5, "devices": ["ib0"],
              "selectors": {"vendors": ["15b3"]})"),
       kRefused, kSame, "devices: selectors are given too"},
      {"neither", One(R"("resourceName": "a", "rdmaHcaMax": 5)"), kRefused,
       kSame, "must have an entry"},
      {"empty selectors",
       One(R"("resourceName": "a", "rdmaHcaMax": 5, "selectors": {})"),
       kRefused, kSame, "must have an entry"},
      {"empty devices, empty lists",
       One(R"("resourceName": "a", "rdmaHcaMax": 5, "devices": [],
              "selectors": {"vendors": []})"),
       kRefused, kSame, "must have an entry"},
      {"keys in any case",
       R"({"CONFIGLIST": [{"ResourceName": "a", "RDMAHCAMAX": 7,
           "Selectors": {"IfNames": ["ib0"]}}]})",
       "rdma/a=7", kSame, ""},
      {"unknown keys",
       One(R"("resourceName": "a", "rdmaHcaMax": 7, "comment": "x",
              "selectors": {"ifNames": ["ib0"], "numa": 1})"),
       "rdma/a=7", kSame, "numa: unknown key"},
      {"an unknown key in place of the known one",
       One(R"("resourceName": "a", "rdmaHcaMax": 7,
              "selectors": {"vendor": ["15b3"]})"),
       kRefused, kSame, "must have an entry"},
      {"a repeated key: the last counts",
       One(R"("resourceName": "b", "resourceName": "a", "rdmaHcaMax": 7,
              "rdmaHcaMax": 8, "selectors": {"ifNames": ["ib0"]})"),
       "rdma/a=8", kSame, "is given twice"},
      {"repeated selectors are merged",
       One(R"("resourceName": "a", "rdmaHcaMax": 8,
              "selectors": {"vendors": ["15b3"]},
              "selectors": {"deviceIDs": ["none"]})"),
       "rdma/a=0", kSame, "is given twice"},
      {"rdmaHcaMax absent", One(R"("resourceName": "a",
              "selectors": {"ifNames": ["ib0"]})"),
       "rdma/a=0", kSame, "0 shares are advertised"},
      {"rdmaHcaMax null", One(R"("resourceName": "a", "rdmaHcaMax": null,
              "selectors": {"ifNames": ["ib0"]})"),
       "rdma/a=0", kSame, "0 shares are advertised"},
      {"rdmaHcaMax 0", One(R"("resourceName": "a", "rdmaHcaMax": 0,
              "selectors": {"ifNames": ["ib0"]})"),
       "rdma/a=0", kSame, ""},
      {"rdmaHcaMax negative", One(R"("resourceName": "a", "rdmaHcaMax": -1,
              "selectors": {"ifNames": ["ib0"]})"),
       kRefused, kSame, "must be a whole number from 0"},
      {"rdmaHcaMax as text", One(R"("resourceName": "a", "rdmaHcaMax": "5",
              "selectors": {"ifNames": ["ib0"]})"),
       kRefused, kSame, "remove the quotes"},
      {"rdmaHcaMax with a fraction",
       One(R"("resourceName": "a", "rdmaHcaMax": 5.0,
              "selectors": {"ifNames": ["ib0"]})"),
       kRefused, kSame, "must be a whole number"},
      {"more than the kubelet takes: no message arrives there",
       One(R"("resourceName": "a", "rdmaHcaMax": 1000000,
              "selectors": {"ifNames": ["ib0"]})"),
       "rdma/a=0", "rdma/a=205019", "the largest that fits, 205019"},
      {"configList absent",
       R"({"periodicUpdateInterval": 5, "ConfigLists": []})", kRefused, kSame,
       "configList: is missing"},
      {"configList empty", R"({"configList": []})", kRefused, kSame,
       "configList: is empty"},
      {"configList null", R"({"configList": null})", kRefused, kSame,
       "configList: is missing"},
      {"an entry that is null", R"({"configList": [null]})", kRefused, kSame,
       "every resource needs a name"},
      {"configList a map", R"({"configList": {"resourceName": "a"}})", kRefused,
       kSame, "must be a list of maps"},
      {"a number for a name", One(R"("resourceName": 5, "rdmaHcaMax": 5,
              "selectors": {"ifNames": ["ib0"]})"),
       kRefused, kSame, "must be a string, not 5"},
      {"a text for a list", Selecting(R"("ifNames": "ib0")"), kRefused, kSame,
       "must be a list of strings"},
      {"a number in a list", Selecting(R"("deviceIDs": [1017])"), kRefused,
       kSame, "must be a string"},
      {"YAML", "configList:\n  - resourceName: a\n", kRefused, kSame,
       "c.json:1:1: not JSON"},
      {"comments", "{\"configList\": [] // none\n}", kRefused, kSame,
       "c.json:1:19: not JSON"},
      {"a trailing comma", "{\"configList\": [\n{},\n]}", kRefused, kSame,
       "c.json:3:1: not JSON"},
      {"trailing text", Selecting(R"("ifNames": ["ib0"])") + " {}", kRefused,
       kSame, "not JSON"},
      {"half a file", R"({"configList": [{"resourceName": "a",)", kRefused,
       kSame, "not JSON"},
  };
}

std::vector<Row> Names() {
  auto named = [](const std::string& fields) {
    return One(fields +
               R"(, "rdmaHcaMax": 5, "selectors": {"ifNames": ["ib0"]})");
  };
  auto two = [](const std::string& first, const std::string& second) {
    const std::string rest =
        R"(, "rdmaHcaMax": 5, "selectors": {"ifNames": ["ib0"]}})";
    return "{\"configList\": [{" + first + rest + ", {" + second + rest + "]}";
  };
  return {
      {"a prefix of its own",
       named(R"("resourceName": "a", "resourcePrefix": "example.com")"),
       "example.com/a=5", kSame, ""},
      {"an empty prefix", named(R"("resourceName": "a", "resourcePrefix": "")"),
       "rdma/a=5", kSame, ""},
      {"capitals and underscores", named(R"("resourceName": "HCA_1")"),
       "rdma/HCA_1=5", kSame, ""},
      {"no name", named(R"("resourcePrefix": "x")"), kRefused, kSame,
       "every resource needs a name"},
      {"a slash", named(R"("resourceName": "a/b")"), kRefused, kSame,
       "is no resource name"},
      {"a name twice", two(R"("resourceName": "a")", R"("resourceName": "a")"),
       kRefused, kSame, "is the name of two pools"},
      {"names that differ in case",
       two(R"("resourceName": "a")", R"("resourceName": "A")"),
       "rdma/a=5 rdma/A=5", kSame, "would both set PURSER_POOL_A_DEVICES"},
      {"a device in two pools",
       two(R"("resourceName": "a")", R"("resourceName": "b")"),
       "rdma/a=5 rdma/b=5", kSame, ""},
      {"a name for queue pairs", named(R"("resourceName": "qp")"), "rdma/qp=5",
       kSame, "its units are taken for such; rename it"},
      {"a name for queue memory", named(R"("resourceName": "wqe_mib")"),
       "rdma/wqe_mib=5", kSame, ""},
      {"a dash, which only the operator's schema takes",
       named(R"("resourceName": "hca-fast")"), kRefused, "rdma/hca-fast=5",
       "a superset"},
      {"a name twice under two prefixes, as the README has it",
       two(R"("resourceName": "a")",
           R"("resourceName": "a", "resourcePrefix": "b")"),
       kRefused, "rdma/a=5 b/a=5", "a superset"},
      {"a prefix that the kubelet takes of nobody",
       two(R"("resourceName": "a", "resourcePrefix": "Bad_Prefix")",
           R"("resourceName": "b")"),
       "rdma/b=5", kSame, "the kubelet would refuse it"},
      {"a name that the kubelet takes of nobody",
       two(R"("resourceName": "_a")", R"("resourceName": "b")"), "rdma/b=5",
       kSame, "the kubelet would refuse it"},
  };
}

std::vector<Row> Selections() {
  return {
      {"vendor and device id",
       Selecting(R"("vendors": ["15b3"], "deviceIDs": ["1007"])"), "rdma/a=50",
       kSame, ""},
      {"ids are compared as they are", Selecting(R"("vendors": ["15B3"])"),
       "rdma/a=0", kSame, ""},
      {"OR inside a list", Selecting(R"("ifNames": ["none", "ib0"])"),
       "rdma/a=50", kSame, ""},
      {"AND between lists",
       Selecting(R"("ifNames": ["ib0"], "linkTypes": ["ether"])"), "rdma/a=0",
       kSame, ""},
      {"driver", Selecting(R"("drivers": ["mlx4_core"])"), "rdma/a=50", kSame,
       ""},
      {"link type", Selecting(R"("linkTypes": ["infiniband"])"), "rdma/a=50",
       kSame, ""},
      {"InfiniBand without a netdev has no link type",
       Selecting(R"("deviceIDs": ["101d"], "linkTypes": ["infiniband"])"),
       "rdma/a=0", kSame, ""},
      {"no netdev: an empty name", Selecting(R"("ifNames": [""])"), "rdma/a=50",
       kSame, ""},
      {"null in a list is an empty text", Selecting(R"("ifNames": [null])"),
       "rdma/a=50", kSame, ""},
      {"the first netdev of two ports", Selecting(R"("ifNames": ["ens2"])"),
       "rdma/a=50", kSame, ""},
      {"the second netdev of two ports", Selecting(R"("ifNames": ["ib9"])"),
       "rdma/a=0", "rdma/a=50", "what is named is found"},
      {"a virtual function", Selecting(R"("ifNames": ["ens3f0v2"])"),
       "rdma/a=50", kSame, ""},
      {"a physical function with virtual ones",
       Selecting(R"("ifNames": ["ens3f0"])"), "rdma/a=50", kSame, ""},
      {"the first slave of a bond", Selecting(R"("ifNames": ["ens6f0"])"),
       "rdma/a=50", kSame, ""},
      {"a bond", Selecting(R"("ifNames": ["bond0"])"), "rdma/a=0", "rdma/a=50",
       "what is named is found"},
      {"a sub-function", Selecting(R"("ifNames": ["en3f0pf0sf88"])"),
       "rdma/a=0", "rdma/a=50", "what is named is found"},
      {"soft-RoCE by its netdev", Selecting(R"("ifNames": ["eth0"])"),
       "rdma/a=0", "rdma/a=50", "what is named is found"},
      {"soft-RoCE by its driver", Selecting(R"("drivers": ["rdma_rxe"])"),
       "rdma/a=0", "rdma/a=50", "what is named is found"},
      {"a device without umad", Selecting(R"("drivers": ["ice"])"), "rdma/a=0",
       "rdma/a=50", "umad is not needed"},
      {"nothing matches", Selecting(R"("drivers": ["none"])"), "rdma/a=0",
       kSame, ""},
  };
}

void Check(const PeerNode& node, const Row& row) {
  SCOPED_TRACE(row.what);
  const absl::StatusOr<Config> config = ParseConfig("c.json", row.config);
  const std::string expected = row.purser == kSame ? row.peer : row.purser;
  if (!config.ok()) {
    EXPECT_EQ(expected, kRefused) << config.status();
    EXPECT_THAT(std::string(config.status().message()),
                testing::HasSubstr(row.because));
    return;
  }
  EXPECT_EQ(config->form, ConfigForm::kSharedRdma);
  EXPECT_EQ(node.Advertised(*config), expected);
  // What is different has a reason, and what is odd a warning.
  const std::string warnings = absl::StrJoin(config->warnings, "\n");
  if (row.purser != kSame) {
    EXPECT_STRNE(row.because, "");
  } else if (*row.because == '\0') {
    EXPECT_EQ(warnings, "");
  } else {
    EXPECT_THAT(warnings, testing::HasSubstr(row.because));
  }
}

TEST(SharedRdmaTable, SideBySideWithThatPlugin) {
  const PeerNode node;
  size_t rows = 0;
  for (const std::vector<Row>& table : {Forms(), Names(), Selections()}) {
    for (const Row& row : table) Check(node, row);
    rows += table.size();
  }
  EXPECT_GE(rows, 60u);
}

TEST(SharedRdma, TheIntervalIsThatPluginsOwn) {
  auto interval = [](const std::string& key) {
    return ParseConfig("c.json", "{" + key +
                                     R"("configList": [{"resourceName": "a",
                              "rdmaHcaMax": 1, "devices": ["a"]}]})")
        .value();
  };
  using std::chrono::seconds;
  EXPECT_EQ(interval("").rescan_interval, seconds(60));
  EXPECT_EQ(interval("\"periodicUpdateInterval\": null,").rescan_interval,
            seconds(60));
  EXPECT_EQ(interval("\"periodicUpdateInterval\": 300,").rescan_interval,
            seconds(300));
  const Config never = interval("\"periodicUpdateInterval\": 0,");
  EXPECT_EQ(never.rescan_interval, seconds(0));
  EXPECT_THAT(never.warnings,
              testing::Contains(testing::HasSubstr("no rescan by the clock")));
  EXPECT_EQ(interval("\"periodicUpdateInterval\": 9000000000000000000,")
                .rescan_interval,
            std::chrono::hours(8760));
  EXPECT_FALSE(ParseConfig("c.json",
                           R"({"periodicUpdateInterval": -1, "configList": [{
                      "resourceName": "a", "devices": ["a"]}]})")
                   .ok());
}

// Keys that the other plugin ignores.
TEST(SharedRdma, CapacityMayStandBeside) {
  const PeerNode node;
  const std::string pools =
      R"("configList": [{"resourceName": "a", "rdmaHcaMax": 5,
         "selectors": {"ifNames": ["ib0"]}}])";
  const absl::StatusOr<Config> config = ParseConfig(
      "c.json", "{" + pools +
                    R"(, "queueMemory": {"capacity": "64Mi", "unit": "16Mi"},
                       "queuePairs": {"capacity": 100, "reserve": "10%"}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings, testing::IsEmpty());
  EXPECT_EQ(node.Advertised(*config), "rdma/a=5 rdma/wqe-16mib=4 rdma/qp=90");
  const absl::StatusOr<Config> collides = ParseConfig(
      "c.json", R"({"configList": [{"resourceName": "qp", "rdmaHcaMax": 5,
                    "devices": ["a"]}], "queuePairs": {"capacity": 100}})");
  EXPECT_THAT(std::string(collides.status().message()),
              testing::HasSubstr("rdma/qp is the name of a pool, too"));
}

}  // namespace
}  // namespace purser::plugin
