// SPDX-License-Identifier: Apache-2.0
#include "planner/report.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/strict_yaml.h"
#include "gmock/gmock.h"
#include "spdlog/fmt/fmt.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kText =
    "version: v1\nname: two\npodsPerNode: 2\n"
    "completionQueues: [{name: q}]\n"
    "sharedReceiveQueues: [{name: s, maxWr: 100}]\n"
    "groups:\n"
    "- {name: a, class: core, count: 10, maxSendWr: 256, maxSendSge: 4, "
    "maxInlineData: 64, maxRecvWr: 256}\n"
    "- {name: b, count: 2, completionQueue: q, sharedReceiveQueue: s}\n";

Report ReportOn(std::string_view profile, std::string_view text = kText,
                std::optional<uint64_t> budget = std::nullopt) {
  return MakeReport(Shared(text), On(profile), budget);
}

TEST(ReportTest, Table) {
  const std::string table = RenderTable(ReportOn("rxe"));
  EXPECT_THAT(table, StartsWith("two on rxe (soft-RoCE of current kernels)\n"));
  EXPECT_THAT(table, HasSubstr("GROUP  CLASS  TYPE  COUNT  SEND "));
  EXPECT_THAT(table,
              HasSubstr("a      core   RC       10  256 x 4, 64 B  256 x 1  "
                        "511/511    266,240     36,864  135,168   808  439,080"
                        "    53,248    4.2 MiB\n"));
  EXPECT_THAT(table,
              HasSubstr("b      -      RC        2  128 x 1        s  "));
  EXPECT_THAT(table, HasSubstr("shared"));
  EXPECT_THAT(table, HasSubstr("s       shared receive queue      1  100 x 1"));
  EXPECT_THAT(table, HasSubstr("class core"));
  EXPECT_THAT(table, HasSubstr("no class"));
  EXPECT_THAT(table, HasSubstr("node, 2 pods"));
  EXPECT_THAT(table, HasSubstr("rdma/wqe-mib: 5 "));
  EXPECT_THAT(table, HasSubstr("in the kubelet's systemReserved; at least all "
                               "rdma/wqe-mib that the node advertises"));
  EXPECT_THAT(table, HasSubstr("in request and limit of a container"));
  EXPECT_THAT(table, HasSubstr("savings, each by itself\n  a  max_send_wr"));
  EXPECT_THAT(table,
              HasSubstr("\nfor the same, each by itself\n  a  max_send_wr"));
  EXPECT_THAT(table, HasSubstr("warning: 4.5 MiB of each pod lie in the "
                               "kernel"));
}

TEST(ReportTest, TableWithoutClassesHasNoColumnForThem) {
  const std::string table =
      RenderTable(ReportOn("mlx5", Groups("- {name: a}\n")));
  EXPECT_THAT(table, Not(HasSubstr("CLASS")));
  EXPECT_THAT(table, Not(HasSubstr("SHARED")));
  EXPECT_THAT(table, HasSubstr("node, 1 pod "));
}

TEST(ReportTest, TableOfWhatFits) {
  const std::string table = RenderTable(
      ReportOn("rxe", Groups("- {name: a, count: 100}\n"), 64 << 20));
  EXPECT_THAT(table, HasSubstr("fit into 64 MiB"));
  EXPECT_THAT(table, HasSubstr("ASKED"));
  EXPECT_THAT(table, HasSubstr("128/128"));
}

TEST(ReportTest, TableShowsTheLargestOfManyGroups) {
  std::string text = Groups("");
  for (int i = 0; i < 40; ++i)
    text += fmt::format("- {{name: g{}, count: {}}}\n", i, i + 1);
  const std::string table = RenderTable(ReportOn("mlx5", text));
  EXPECT_THAT(table, HasSubstr("and 10 smaller groups; -o json has them all"));
  EXPECT_THAT(table, HasSubstr("\ng39 "));
  EXPECT_THAT(table, HasSubstr("\ng10 "));
  EXPECT_THAT(table, Not(HasSubstr("\ng9 ")));
}

TEST(ReportTest, RefusedGroups) {
  const Report report =
      ReportOn("mlx5", Groups("- {name: a, maxSendSge: 1000}\n- {name: b}\n"));
  EXPECT_TRUE(report.refused());
  EXPECT_THAT(RenderTable(report), HasSubstr("refused\n"));
  EXPECT_THAT(RenderTable(report),
              HasSubstr("without what the device refuses"));
  EXPECT_THAT(RenderRefusals(report), StartsWith("w.yaml:3:25: groups[0]: "));
}

TEST(ReportTest, ManyRefusalsAreCut) {
  std::string text = Groups("");
  for (int i = 0; i < 150; ++i)
    text += fmt::format("- {{name: g{}, maxSendSge: 1000}}\n", i);
  EXPECT_THAT(RenderRefusals(ReportOn("mlx5", text)),
              testing::EndsWith("\nand 50 more refusals\n"));
}

TEST(ReportTest, Comparison) {
  const std::string text = Groups(
      "- {name: a, count: 100, maxSendSge: 8}\n- {name: b, maxSendSge: 8}\n");
  std::vector<Report> reports;
  for (const char* profile : {"mlx5", "rxe", "irdma_gen1", "ionic"})
    reports.push_back(ReportOn(profile, text));
  const std::string table = RenderComparison(reports);
  EXPECT_THAT(table, StartsWith("DEVICE"));
  EXPECT_THAT(table, HasSubstr("\nmlx5 "));
  EXPECT_THAT(table, HasSubstr("  exact\n"));
  EXPECT_THAT(table, HasSubstr("  estimated\n"));
  EXPECT_THAT(table, HasSubstr("\ntextbook sum of the work queues: "));
  EXPECT_THAT(table,
              HasSubstr("refused by\nirdma_gen1: w.yaml:3:37: groups[0]: "
                        "max_send_sge is 8, irdma_gen1 takes 3"));
  EXPECT_THAT(table, HasSubstr("(and 1 more)"));
}

TEST(ReportTest, ComparisonOfWhatFits) {
  std::vector<Report> reports;
  for (const char* profile : {"mlx5", "rxe"})
    reports.push_back(
        ReportOn(profile, Groups("- {name: a, count: 100}\n"), 64 << 20));
  EXPECT_THAT(RenderComparison(reports), HasSubstr("DEPTHS"));
  std::vector<Report> none = {ReportOn("mlx5", kText, 1)};
  EXPECT_TRUE(none[0].refused());
  EXPECT_THAT(RenderComparison(none), HasSubstr("more than the 1 B to fit"));
  EXPECT_THAT(RenderRefusals(none[0]), HasSubstr("more than the 1 B to fit"));
}

TEST(ReportTest, JsonHasTheFiguresOfThePlan) {
  const Report report = ReportOn("rxe");
  const json document = json::parse(RenderJson({&report, 1}));
  EXPECT_EQ(document["workload"], "two");
  EXPECT_EQ(document["podsPerNode"], 2);
  EXPECT_FALSE(document.contains("fitBytes"));
  ASSERT_EQ(document["plans"].size(), 1u);
  const json& plan = document["plans"][0];
  EXPECT_EQ(plan["device"], "rxe");
  EXPECT_EQ(plan["exactness"], "exact");
  EXPECT_EQ(plan["askFor"]["rdma/wqe-mib"], report.plan.units());
  EXPECT_EQ(plan["askFor"]["memoryLimitMib"], 1);
  EXPECT_EQ(plan["askFor"]["nodeReserve"]["recommended"], "systemReserved");
  EXPECT_EQ(plan["askFor"]["nodeReserve"]["systemReservedMib"],
            Mebibytes(report.plan.node.node()));
  EXPECT_EQ(plan["askFor"]["nodeReserve"]["orRequestAndLimitMib"],
            Mebibytes(report.plan.pod.node()));
  EXPECT_EQ(plan["pod"]["totalBytes"], report.plan.pod.queues.total());
  EXPECT_EQ(plan["node"]["queuePairs"], 24);
  ASSERT_EQ(plan["groups"].size(), 2u);
  EXPECT_EQ(plan["groups"][0]["each"]["sendBytes"], 266240);
  EXPECT_EQ(plan["groups"][0]["sendSlots"], 511);
  EXPECT_EQ(plan["groups"][0]["writtenBack"]["maxSendWr"], 511);
  EXPECT_EQ(plan["groups"][0]["writtenBack"]["maxInlineData"], 64);
  EXPECT_EQ(plan["groups"][1]["completionQueue"], "q");
  EXPECT_EQ(plan["groups"][1]["sharedReceiveQueue"], "s");
  EXPECT_EQ(plan["completionQueues"][0]["name"], "q");
  EXPECT_EQ(plan["sharedReceiveQueues"][0]["entries"], 100);
  EXPECT_EQ(plan["classes"][0]["name"], "core");
  EXPECT_FALSE(plan["savings"].empty());
  EXPECT_EQ(plan["sameCost"][0]["argument"], "max_send_wr");
  EXPECT_GT(plan["sameCost"][0]["most"], plan["sameCost"][0]["asked"]);
  EXPECT_FALSE(plan["warnings"].empty());
  EXPECT_TRUE(plan["refusals"].empty());
}

TEST(ReportTest, JsonOfRefusalsAndSeveral) {
  const std::string text =
      Groups("- {name: a, maxSendSge: 1000}\n- {name: b}\n");
  const std::vector<Report> reports = {ReportOn("mlx5", text),
                                       ReportOn("rxe", text, 1)};
  const json document = json::parse(RenderJson(reports));
  ASSERT_EQ(document["plans"].size(), 2u);
  EXPECT_FALSE(document["plans"][0].contains("groups"));
  EXPECT_EQ(document["plans"][0]["refusals"].size(), 1u);
  EXPECT_THAT(document["plans"][1]["error"].get<std::string>(),
              HasSubstr("groups[0]"));
  const json one = json::parse(RenderJson({reports.data(), 1}));
  EXPECT_EQ(one["plans"][0]["groups"][0]["refused"], true);
  EXPECT_FALSE(one["plans"][0]["groups"][0].contains("each"));
}

// The same values by another parser: strict YAML takes both.
TEST(ReportTest, YamlIsTheSameDocument) {
  const Report report = ReportOn("rxe", kText, 64 << 20);
  const std::string yaml = RenderYaml({&report, 1});
  EXPECT_THAT(yaml, StartsWith("workload: \"two\"\npodsPerNode: 2\n"
                               "fitBytes: 67108864\nplans:\n"));
  EXPECT_THAT(yaml, HasSubstr("refusals: []"));
  std::vector<uint64_t> sums[2];
  for (const bool of_yaml : {false, true}) {
    base::StrictYaml document("d", of_yaml ? yaml : RenderJson({&report, 1}));
    for (base::YamlMap plan : document.Root().Maps("plans")) {
      for (const char* key : {"pod", "node"})
        for (const char* field :
             {"totalBytes", "containerBytes", "textbookBytes", "queuePairs"}) {
          uint64_t value = 0;
          EXPECT_TRUE(plan.Map(key).Uint(field, 0, UINT64_MAX, &value));
          sums[of_yaml].push_back(value);
        }
      for (base::YamlMap group : plan.Maps("groups")) {
        uint64_t value = 0;
        EXPECT_TRUE(group.Uint("maxSendWr", 0, UINT64_MAX, &value));
        sums[of_yaml].push_back(value);
      }
    }
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0].size(), 10u);
}

TEST(ReportTest, PathsThatAreNoTextDoNoHarm) {
  auto workload = ReadWorkload("\xff\n<b>", Groups("- {name: a, maxSendSge: "
                                                   "1000}\n"));
  ASSERT_TRUE(workload.ok());
  const Report report =
      MakeReport(std::make_shared<const Workload>(*std::move(workload)),
                 On("mlx5"), std::nullopt);
  const json document = json::parse(RenderJson({&report, 1}));
  EXPECT_EQ(document["plans"][0]["refusals"][0]["where"],
            "\\ufffd\\n<b>:3:25: groups[0]");
  EXPECT_THAT(RenderYaml({&report, 1}), HasSubstr("groups[0]"));
}

TEST(ReportTest, NothingIsAnEmptyDocument) {
  EXPECT_EQ(RenderJson({}), "null\n");
}

}  // namespace
}  // namespace purser::planner
