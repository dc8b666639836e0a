// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/delivered.h"
#include "tests/unit/cli/cli_fixture.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// It asks no sidecar, so there is none.
class PlanCommandTest : public testing::Test {
 protected:
  std::string File(const std::string& text) {
    tree_.Write("w.yaml", text);
    return tree_.path("w.yaml");
  }

  fakes::FileTree tree_;
  Purser purser_;
};

TEST_F(PlanCommandTest, OneGroupByFlags) {
  EXPECT_EQ(
      purser_({"plan", "--provider", "rxe", "--count", "10", "--type", "UC",
               "--send-wr", "256", "--send-sge", "4", "--inline", "64",
               "--recv-wr", "256", "--recv-sge", "1", "--pods", "3"}),
      kOk)
      << purser_.err.text();
  EXPECT_THAT(purser_.out.text(),
              AllOf(HasSubstr("rxe (soft-RoCE"), HasSubstr("UC"),
                    HasSubstr("256 x 4, 64 B"), HasSubstr("439,080"),
                    HasSubstr("node, 3 pods")));
}

TEST_F(PlanCommandTest, SharedQueuesByFlags) {
  EXPECT_EQ(
      purser_({"plan", "--provider", "mlx5", "--shared-cq", "--srq-wr", "500",
               "--srq-sge", "2", "--send-op", "send", "--send-op", "write"}),
      kOk)
      << purser_.err.text();
  EXPECT_THAT(purser_.out.text(),
              AllOf(HasSubstr("cq      completion queue"),
                    HasSubstr("srq     shared receive queue      1  500 x 2"),
                    Not(HasSubstr("send_ops"))));
}

TEST_F(PlanCommandTest, AWorkloadInAFile) {
  const std::string file =
      File("version: v1\nname: mine\nprovider: mlx5\ngroups: [{name: a}]\n");
  EXPECT_EQ(purser_({"plan", file}), kOk) << purser_.err.text();
  EXPECT_THAT(purser_.out.text(), HasSubstr("mine on mlx5"));
}

TEST_F(PlanCommandTest, TheProviderOfTheCommandLineWins) {
  const std::string file = File(
      "version: v1\nprovider: mlx5\nlimits: {maxQpWr: 1}\n"
      "groups: [{name: a}]\n");
  EXPECT_EQ(purser_({"plan", file}), kRefused);
  EXPECT_THAT(
      purser_.err.text(),
      AllOf(HasSubstr("refused:\n"), HasSubstr("w.yaml:4:10: groups[0]"),
            HasSubstr("max_send_wr is 128, mlx5 takes 1")));
  Purser again;
  EXPECT_EQ(again({"plan", file, "--provider", "rxe"}), kOk)
      << again.err.text();
  Purser all;
  EXPECT_EQ(all({"plan", file, "--all-providers"}), kOk);
  EXPECT_THAT(all.out.text(), HasSubstr("\nrxe_6.1 "));
}

TEST_F(PlanCommandTest, AllProvidersWhereNoneIsNamed) {
  EXPECT_EQ(purser_({"plan"}), kOk);
  EXPECT_THAT(purser_.out.text(),
              AllOf(HasSubstr("\nmlx5 "), HasSubstr("\nsiw "),
                    HasSubstr("refused by\nefa: ")));
  Purser none;
  EXPECT_EQ(none({"plan", "--type", "srd", "--inline", "500"}), kRefused);
}

TEST_F(PlanCommandTest, ADeviceOfThisMachine) {
  purser_.find_device = [](const std::string& name) {
    return planner::Device{.name = name,
                           .provider = queue_memory::Provider::kRxe,
                           .counts = {.max_qp = 5},
                           .opened = true};
  };
  EXPECT_EQ(purser_({"plan", "--device", "rxe7", "--count", "6"}), kRefused);
  EXPECT_THAT(purser_.err.text(),
              HasSubstr("6 queue pairs are more than the 5 that rxe7 has"));
  Purser none;
  none.find_device = [](const std::string&) {
    return absl::NotFoundError("no such device");
  };
  EXPECT_EQ(none({"plan", "--device", "rxe7"}), kFailure);
  EXPECT_EQ(none.err.text(), "purser: no such device\n");
}

TEST_F(PlanCommandTest, TheKernelsVersion) {
  EXPECT_EQ(purser_({"plan", "--provider", "rxe", "--kernel-version",
                     "6.1.0-31-amd64"}),
            kOk)
      << purser_.err.text();
  EXPECT_THAT(purser_.out.text(), HasSubstr("soft-RoCE of Linux 5.16 to 6.5"));
  Purser wrong;
  EXPECT_EQ(wrong({"plan", "--provider", "rxe", "--kernel-version", "six"}),
            kUsage);
  EXPECT_THAT(wrong.err.text(), HasSubstr("--kernel-version: \"six\" is no"));
  Purser alone;
  EXPECT_EQ(alone({"plan", "--kernel-version", "6.1"}), kUsage);
  EXPECT_THAT(alone.err.text(),
              HasSubstr("--kernel-version is that of one device"));
}

TEST_F(PlanCommandTest, LimitsByHand) {
  EXPECT_EQ(purser_({"plan", "--provider", "mlx5", "--limit", "maxQpWr=100"}),
            kRefused);
  const struct {
    std::vector<std::string> limits;
    std::string message;
  } kCases[] = {
      {{"maxQpWr"}, "--limit: \"maxQpWr\": write NAME=NUMBER"},
      {{"maxQpWr="}, "write NAME=NUMBER"},
      {{"maxQpWr=x"}, "write NAME=NUMBER"},
      {{"maxQpWr=-1"}, "write NAME=NUMBER"},
      {{"maxQpWr= 1"}, "write NAME=NUMBER"},
      {{"maxQpWr=99999999999999999999"}, "write NAME=NUMBER"},
      {{"maxQpWr=0"}, "--limit maxQpWr: must be a whole number from 1 to "},
      {{"maxQpWr=2147483648"}, "not 2147483648"},
      {{"=5"}, "there is no limit \"\""},
      {{"max_qp_wr=5"}, "(did you mean \"maxQpWr\"?)"},
      {{"efaSubCqs=5"}, "--limit efaSubCqs: is a limit of efa; mlx5 has none"},
      {{"maxQpWr=5", "maxQpWr=6"}, "--limit: maxQpWr is given twice"},
  };
  for (const auto& c : kCases) {
    Purser wrong;
    std::vector<std::string> arguments = {"plan", "--provider", "mlx5"};
    for (const std::string& limit : c.limits)
      arguments.insert(arguments.end(), {"--limit", limit});
    EXPECT_EQ(wrong(arguments), kUsage) << c.message;
    EXPECT_THAT(wrong.err.text(), HasSubstr(c.message));
  }
  Purser alone;
  EXPECT_EQ(alone({"plan", "--limit", "maxQpWr=100"}), kUsage);
  EXPECT_THAT(alone.err.text(), HasSubstr("add --provider or --device"));
}

TEST_F(PlanCommandTest, JsonAndYaml) {
  EXPECT_EQ(purser_({"plan", "--provider", "mlx5", "-o", "json"}), kOk);
  EXPECT_THAT(purser_.out.text(), HasSubstr("\"rdma/wqe-mib\": 1"));
  Purser yaml;
  EXPECT_EQ(yaml({"plan", "--provider", "mlx5", "-o", "yaml"}), kOk);
  EXPECT_THAT(yaml.out.text(), HasSubstr("    rdma/wqe-mib: 1\n"));
}

TEST_F(PlanCommandTest, TheDepthsThatFit) {
  EXPECT_EQ(purser_({"plan", "--provider", "rxe", "--count", "1000",
                     "--send-sge", "4", "--fit", "512MiB"}),
            kOk);
  EXPECT_THAT(purser_.out.text(),
              AllOf(HasSubstr("fit into 512 MiB"), HasSubstr("427 x 4")));
  Purser same;
  EXPECT_EQ(same({"plan", "--provider", "rxe", "--fit", "512Mi"}), kOk);
  Purser little;
  EXPECT_EQ(
      little({"plan", "--provider", "rxe", "--count", "1000", "--fit", "1Mi"}),
      kRefused);
  EXPECT_THAT(little.err.text(), HasSubstr("more than the 1 MiB to fit into"));
  Purser wrong;
  EXPECT_EQ(wrong({"plan", "--fit", "0"}), kUsage);
  Purser text;
  EXPECT_EQ(text({"plan", "--fit", "512MB"}), kUsage);
}

TEST_F(PlanCommandTest, APicture) {
  const std::string file = tree_.path("out.svg");
  EXPECT_EQ(purser_({"plan", "--provider", "mlx5", "--plot", file}), kOk);
  std::ostringstream svg;
  svg << std::ifstream(file).rdbuf();
  EXPECT_THAT(svg.str(), testing::StartsWith("<svg "));
  Purser nowhere;
  EXPECT_EQ(nowhere({"plan", "--provider", "mlx5", "--plot",
                     tree_.path("no/out.svg")}),
            kFailure);
  EXPECT_THAT(nowhere.err.text(), HasSubstr("cannot write "));
}

TEST_F(PlanCommandTest, APictureDoesNotOverwriteTheWorkload) {
  const std::string text = "version: v1\ngroups: [{name: a}]\n";
  const std::string file = File(text);
  std::filesystem::create_symlink(file, tree_.path("link.svg"));
  for (const std::string& plot : {file, tree_.path("link.svg")}) {
    Purser purser;
    EXPECT_EQ(purser({"plan", file, "--plot", plot}), kUsage) << plot;
    EXPECT_THAT(purser.err.text(), HasSubstr("would overwrite the workload"));
  }
  std::ostringstream kept;
  kept << std::ifstream(file).rdbuf();
  EXPECT_EQ(kept.str(), text);
}

// The reader of a full disk has half a document.
TEST_F(PlanCommandTest, WhatIsNotWrittenIsNoSuccess) {
  std::ofstream full("/dev/full");
  full << "{}";
  std::ostringstream err;
  EXPECT_EQ(Delivered(kOk, full, err), kFailure);
  EXPECT_THAT(err.str(), HasSubstr("cannot write the results"));
  EXPECT_EQ(Delivered(kRefused, full, err), kRefused);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"plan", "--provider", "mlx5"}, {"--help"}}) {
    Purser closed;
    closed.out.setstate(std::ios::badbit);
    EXPECT_EQ(closed(arguments), kFailure) << arguments[0];
    EXPECT_THAT(closed.err.text(), HasSubstr("cannot write the results"));
  }
}

TEST_F(PlanCommandTest, WhatIsWrongIsTold) {
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
  } kCases[] = {
      {{"--provider", "mlx6"}, kUsage, "(did you mean \"mlx5\"?)"},
      {{"--type", "rd"}, kUsage, "--type: there is no queue pair type"},
      {{"--send-op", "fly"}, kUsage, "--send-op: there is no send operation"},
      {{"--type", "ud", "--send-op", "read"}, kUsage, "ud queue pairs cannot"},
      {{"--send-wr", "4294967295"}, kUsage, "--send-wr"},
      {{"--count", "0"}, kUsage, "--count"},
      {{"--provider", "mlx5", "--device", "mlx5_0"}, kUsage, "excludes"},
      {{"--provider", "mlx5", "--all-providers"}, kUsage, "excludes"},
      {{"--srq-wr", "5", "--recv-wr", "5"}, kUsage, "contradicts --recv-wr"},
      {{"--srq-wr", "5", "--recv-sge", "1"}, kUsage, "contradicts --recv-sge"},
      {{"--srq-sge", "5"}, kUsage, "--srq-sge needs --srq-wr"},
      {{"--type", "DCI", "--recv-wr", "5"},
       kUsage,
       "--recv-wr: dci queue pairs have no receives: remove it"},
      {{"--send-wr", "0", "--recv-wr", "0"}, kUsage, "does nothing"},
      {{"-o", "xml"}, kUsage, "none of table, json, yaml"},
      {{tree_.path("missing.yaml")}, kFailure, "cannot read"},
      {{File("groups: 5\n")}, kUsage, "w.yaml:1:9: groups: must be a list"},
      {{File("groups: 5\n"), "--send-wr", "5"},
       kUsage,
       "plan takes a file or --send-wr, not both"},
  };
  for (const auto& c : kCases) {
    Purser purser;
    std::vector<std::string> arguments = {"plan"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    EXPECT_EQ(purser(arguments), c.exit_code) << c.arguments[0];
    EXPECT_THAT(purser.err.text(), HasSubstr(c.message));
    EXPECT_EQ(purser.out.text(), "");
  }
}

}  // namespace
}  // namespace purser::cli
