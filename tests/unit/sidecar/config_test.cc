// SPDX-License-Identifier: Apache-2.0
#include "sidecar/config.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

absl::StatusOr<Invocation> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "purser-sidecar");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

std::string Fault(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ParseConfig, AFileThatSaysNothingIsTheDefaults) {
  const auto config = ParseConfig("sidecar.yaml", "version: v1\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->devices, IsEmpty());
  EXPECT_EQ(config->budget_bytes, std::nullopt);
  EXPECT_EQ(config->memory_limit_fraction, 0.5);
  EXPECT_EQ(config->SocketPath(), "/run/purser/sidecar.sock");
  EXPECT_EQ(config->shared_volume, "/run/purser");
  EXPECT_EQ(config->metrics_address, ":9837");
  EXPECT_EQ(config->log_level, base::LogLevel::kInfo);
}

TEST(ParseConfig, ReadsEveryKey) {
  const auto config = ParseConfig("sidecar.yaml", R"(
version: v1
devices: [mlx5_0, mlx5_1]
budget: 64Mi
memoryLimitFraction: 25%
sharedVolume: /shared
socket: /shared/purser.sock
metricsAddress: 127.0.0.1:9000
logLevel: debug
maxClients: 7
memoryPressure:
  container: {tight: 70%, critical: 0.8}
  node: {tight: 80%}
  someStalled: 20%
  allStalled: 5%
classes:
- {name: core, core: true, floor: 20%, weight: 3, maxSendWr: 4096, maxSendSge: 16, maxRecvWr: 512, maxRecvSge: 2, maxInlineData: 64}
- {name: ordinary, maxShare: 50%}
guarantees:
- {client: storage, share: 10%}
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->devices, ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_EQ(config->budget_bytes, 67108864u);
  EXPECT_EQ(config->budget_origin, "budget in sidecar.yaml");
  EXPECT_EQ(config->memory_limit_fraction, 0.25);
  EXPECT_EQ(config->shared_volume, "/shared");
  EXPECT_EQ(config->SocketPath(), "/shared/purser.sock");
  EXPECT_EQ(config->metrics_address, "127.0.0.1:9000");
  EXPECT_EQ(config->log_level, base::LogLevel::kDebug);
  EXPECT_EQ(config->max_clients, 7u);
  EXPECT_EQ(config->limits.container.tight_used, 0.7);
  EXPECT_EQ(config->limits.container.critical_used, 0.8);
  EXPECT_EQ(config->limits.node.tight_used, 0.8);
  EXPECT_EQ(config->limits.node.critical_used, 0.95);
  EXPECT_EQ(config->limits.node.tight_some, 20);
  EXPECT_EQ(config->limits.container.critical_full, 5);
  EXPECT_EQ(config->classes.Names(), "core, ordinary, default");
  const ClassConfig& core = config->classes.classes[0];
  EXPECT_TRUE(core.core);
  EXPECT_EQ(core.floor, 0.2);
  EXPECT_EQ(core.weight, 3u);
  EXPECT_EQ(core.cap.max_send_wr, 4096u);
  EXPECT_EQ(core.cap.max_recv_wr, 512u);
  EXPECT_EQ(core.cap.max_send_sge, 16u);
  EXPECT_EQ(core.cap.max_recv_sge, 2u);
  EXPECT_EQ(core.cap.max_inline_data, 64u);
  EXPECT_EQ(config->classes.classes[1].max_share, 0.5);
  ASSERT_EQ(config->classes.guarantees.size(), 1u);
  EXPECT_EQ(config->classes.guarantees[0].client, "storage");
  EXPECT_EQ(config->classes.guarantees[0].share, 0.1);
}

TEST(ParseConfig, TheSocketFollowsTheSharedVolume) {
  EXPECT_EQ(
      ParseConfig("c", "version: v1\nsharedVolume: /shared")->SocketPath(),
      "/shared/sidecar.sock");
}

TEST(ParseConfig, ReportsAllFaultsWithTheirPlaces) {
  const std::string fault = Fault(ParseConfig("sidecar.yaml", R"(version: v2
devices: [mlx5_0, mlx5_0]
budgt: 64Mi
memoryLimitFraction: 1.5
sharedVolume: shared
socket: sidecar.sock
logLevel: loud
maxClients: 0
)")
                                      .status());
  EXPECT_THAT(
      fault,
      AllOf(HasSubstr("sidecar.yaml:1:10: version: \"v2\" is not known"),
            HasSubstr("sidecar.yaml:2:"), HasSubstr("mlx5_0 is named twice"),
            HasSubstr("sidecar.yaml:3:1: budgt: unknown key (did you mean "
                      "\"budget\"?)"),
            HasSubstr("sidecar.yaml:4:"), HasSubstr("sidecar.yaml:5:"),
            HasSubstr("must be an absolute path, is \"shared\""),
            HasSubstr("sidecar.yaml:6:"), HasSubstr("sidecar.yaml:7:"),
            HasSubstr("loud"), HasSubstr("sidecar.yaml:8:")));
}

TEST(ParseConfig, TheVersionIsRequired) {
  for (const char* text : {"", "version:\n", "budget: 1Mi\n"})
    EXPECT_THAT(Fault(ParseConfig("c", text).status()),
                HasSubstr("begin the file with `version: v1`"));
}

TEST(ParseConfig, ABudgetOfNothingIsAFault) {
  EXPECT_THAT(Fault(ParseConfig("c", "budget: 0").status()),
              HasSubstr("must be more than 0 bytes"));
  EXPECT_THAT(Fault(ParseConfig("c", "budget: much").status()),
              HasSubstr("much"));
}

TEST(ParseConfig, ClassesThatCannotBeAreFaults) {
  for (const auto& [yaml, fault] :
       {std::pair("classes: [{name: a, floor: 60%}, {name: b, floor: 50%}]",
                  "promise 110 % of the budget"),
        std::pair("classes: [{floor: 60%}]", "name: is missing"),
        std::pair("classes: [{name: a, weight: 0}]", "weight"),
        std::pair("classes: [{name: a, flor: 1%}]", "did you mean \"floor\""),
        std::pair("guarantees: [{client: a}]", "share: is missing"),
        std::pair("guarantees: [{share: 1%}]", "client: is missing")})
    EXPECT_THAT(
        Fault(ParseConfig("c", std::string("version: v1\n") + yaml).status()),
        HasSubstr(fault));
}

TEST(ParseConfig, ThresholdsOfPressureAreInOrder) {
  EXPECT_THAT(
      Fault(ParseConfig("c",
                        "version: v1\nmemoryPressure:\n  node: {tight: "
                        "95%, critical: 90%}\n")
                .status()),
      HasSubstr("c:3:17: memoryPressure.node.tight: must be below critical "
                "(90 %), is 95 %"));
  EXPECT_THAT(
      Fault(
          ParseConfig("c", "version: v1\nmemoryPressure: {nod: {}}").status()),
      HasSubstr("did you mean \"node\""));
}

TEST(ParseConfig, AnEmptyDeviceNameIsAFault) {
  EXPECT_THAT(Fault(ParseConfig("c", "devices: [\"\"]").status()),
              HasSubstr("ibv_devices"));
}

TEST(ParseCommandLine, WithoutFlagsIsTheDefaults) {
  const auto invocation = Parse({});
  ASSERT_TRUE(invocation.ok()) << invocation.status();
  EXPECT_THAT(invocation->print, IsEmpty());
  EXPECT_EQ(invocation->config.SocketPath(), "/run/purser/sidecar.sock");
}

TEST(ParseCommandLine, FlagsOverrideTheFile) {
  fakes::FileTree tree;
  tree.Write("sidecar.yaml",
             "version: v1\nbudget: 1Gi\nlogLevel: debug\ndevices: [mlx5_9]\n"
             "memoryLimitFraction: 0.1\n");
  const std::string path = tree.path("sidecar.yaml");
  const auto invocation = Parse({"--config",
                                 path.c_str(),
                                 "--budget",
                                 "64Mi",
                                 "--device",
                                 "mlx5_0",
                                 "--device",
                                 "mlx5_1",
                                 "--socket=/s/x.sock",
                                 "--shared-volume",
                                 "/s",
                                 "--metrics-address",
                                 ":1",
                                 "--memory-limit-fraction",
                                 "50%",
                                 "--sysfs-root",
                                 "/a",
                                 "--dev-root",
                                 "/b",
                                 "--proc-root",
                                 "/c",
                                 "--cgroup-root",
                                 "/d"});
  ASSERT_TRUE(invocation.ok()) << invocation.status();
  const Config& config = invocation->config;
  EXPECT_EQ(config.budget_bytes, 67108864u);
  EXPECT_EQ(config.budget_origin, "--budget");
  EXPECT_EQ(config.log_level, base::LogLevel::kDebug) << "from the file";
  EXPECT_THAT(config.devices, ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_EQ(config.SocketPath(), "/s/x.sock");
  EXPECT_EQ(config.shared_volume, "/s");
  EXPECT_EQ(config.metrics_address, ":1");
  EXPECT_EQ(config.memory_limit_fraction, 0.5);
  EXPECT_EQ(config.sysfs_root, "/a");
  EXPECT_EQ(config.dev_root, "/b");
  EXPECT_EQ(config.proc_root, "/c");
  EXPECT_EQ(config.cgroup_root, "/d");
}

TEST(ParseCommandLine, ReportsFaultsOfFlagsAndFileTogether) {
  fakes::FileTree tree;
  tree.Write("sidecar.yaml", "version: v1\nlogLevl: info\n");
  const std::string path = tree.path("sidecar.yaml");
  const std::string fault = Fault(
      Parse({"--config", path.c_str(), "--budgt", "64Mi", "--device", "a",
             "--device", "a", "--budget", "-1", "--log-level", "loud",
             "--memory-limit-fraction", "0", "--socket", "x.sock", "stray"})
          .status());
  EXPECT_THAT(
      fault,
      AllOf(HasSubstr(":2:1: logLevl: unknown key"),
            HasSubstr("unknown flag --budgt (did you mean \"--budget\"?)"),
            HasSubstr("--device: device a is named twice"),
            HasSubstr("--budget: \"-1\""), HasSubstr("--log-level: log level"),
            HasSubstr("--memory-limit-fraction: \"0\""),
            HasSubstr("--socket must be an absolute path"),
            HasSubstr("unexpected argument \"stray\"")));
  EXPECT_THAT(fault, Not(HasSubstr("unexpected argument \"64Mi\"")));
}

TEST(ParseCommandLine, AFlagWithoutItsValueIsAFault) {
  EXPECT_THAT(Fault(Parse({"--budget"}).status()), HasSubstr("--budget"));
  EXPECT_THAT(Fault(Parse({"--budget", "0"}).status()),
              HasSubstr("must be more than 0 bytes"));
  EXPECT_THAT(Fault(Parse({"--budget", "1Mi", "--budget", "2Mi"}).status()),
              HasSubstr("--budget"));
}

TEST(ParseCommandLine, AMissingFileIsAFaultThatNamesIt) {
  EXPECT_THAT(Fault(Parse({"--config", "/nonexistent/sidecar.yaml"}).status()),
              HasSubstr("/nonexistent/sidecar.yaml"));
}

TEST(ParseCommandLine, PrintsHelpAndVersion) {
  EXPECT_THAT(Parse({"--help"})->print,
              AllOf(HasSubstr("--budget"), HasSubstr("--cgroup-root")));
  EXPECT_THAT(Parse({"-h"})->print, HasSubstr("--memory-limit-fraction"));
  EXPECT_THAT(Parse({"--version"})->print,
              testing::MatchesRegex("purser-sidecar [0-9.]+\n"));
}

}  // namespace
}  // namespace purser::sidecar
