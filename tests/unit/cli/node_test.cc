// SPDX-License-Identifier: Apache-2.0
#include "cli/node.h"

#include "tests/fakes/fake_sysfs.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/node_view/node.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class NodeCommandTest : public testing::Test {
 protected:
  NodeCommandTest() {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    node_.kernel.AddDevice("rxe0");
    node_.kernel.Add("rxe0", {.id = 1, .kernel_owner = "ib_core", .type = 1});
    purser_.open_netlink =
        [this]() -> absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>> {
      return node_.kernel.Open();
    };
  }
  int Run(std::vector<std::string> more = {}) {
    const node_view::Options options = node_.options();
    std::vector<std::string> arguments = {"node",
                                          "--proc-root",
                                          options.proc_root,
                                          "--cgroup-root",
                                          options.cgroup_root,
                                          "--container-log-dir",
                                          options.container_log_dir,
                                          "--pod-resources-socket",
                                          options.pod_resources_socket,
                                          "--sysfs-root",
                                          sysfs_.sysfs_root().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return purser_(arguments);
  }
  void AddHolder() {
    node_.AddPodProcess(100, "pod-a", 'a');
    node_.AddContext("rxe0", 1, 100);
    node_.AddQueuePair("rxe0", 17, 100, 1);
    node_.proc.SetRings(100, {{.bytes = 8192, .offset = 0},
                              {.bytes = 4096, .offset = 0x10000},
                              {.bytes = 4096, .offset = 0x20000}});
    node_.proc.SetVmallocinfo({139264, 16384});
    node_.kubelet.Give("ns", "pod-a", "app", "rdma/wqe-mib", 2);
    node_.kubelet.Give("ns", "pod-a", "app", "nvidia.com/gpu", 1);
  }

  node_view::FakeNode node_;
  fakes::FakeSysfs sysfs_{node_.tree};
  Purser purser_;
};

TEST_F(NodeCommandTest, ATableForPeople) {
  AddHolder();
  ASSERT_EQ(Run(), kOk) << purser_.err.text();
  EXPECT_THAT(
      purser_.out.text(),
      AllOf(ContainsRegex("rxe0 +ns +pod-a +app +1 +1 +16,384 +808 +RC/RTS 1 +"
                          "app\\(100\\)"),
            ContainsRegex("rxe0 +- +- +kernel +1 +0 +0 +0 +GSI/RTS 1 +-"),
            ContainsRegex("ns +pod-a +app +2 +rdma/wqe-mib"),
            ContainsRegex("undeclared on rxe0 +0 +0 B"),
            ContainsRegex("rings of rxe in the kernel +155,648 +152 KiB"),
            ContainsRegex("of them with no process seen +139,264"),
            ContainsRegex("memory kept from pods +1,073,741,824 +1 GiB"),
            Not(HasSubstr("nvidia")), Not(HasSubstr("without "))));
}

TEST_F(NodeCommandTest, JsonForPrograms) {
  AddHolder();
  ASSERT_EQ(Run({"-o", "json"}), kOk) << purser_.err.text();
  EXPECT_THAT(
      purser_.out.text(),
      AllOf(HasSubstr("\"pod\": \"pod-a\""), HasSubstr("\"exact\": \"16384\""),
            HasSubstr("\"state\": \"RTS\""), HasSubstr("\"units\": \"2\""),
            HasSubstr("\"unattributedBytes\": \"139264\""),
            HasSubstr("\"reservedMemoryBytes\": \"1073741824\""),
            HasSubstr("\"name\": \"netlink\"")));
}

TEST_F(NodeCommandTest, SaysWhatItGoesWithoutAndWhatIsEstimated) {
  AddHolder();
  node_.tree.Remove("proc/100/maps");
  node_.tree.Directory("proc/100/maps");
  node_.tree.Remove("containers");
  node_.kubelet.Stop();
  ASSERT_EQ(Run(), kOk) << purser_.err.text();
  EXPECT_THAT(purser_.out.text(),
              AllOf(HasSubstr("without mappings (failed): "),
                    HasSubstr("without container_names (absent): "),
                    HasSubstr("without pod_resources (absent): "),
                    ContainsRegex("undeclared +\\? +it cannot be told"),
                    ContainsRegex("1b4e28ba-2fa1-11d2-883f-00000000000a +"
                                  "aaaaaaaaaaaa +1 +1 +~")));
}

TEST_F(NodeCommandTest, ANameCannotWriteOnTheTerminal) {
  node_.proc.AddProcess(100, "\x1b[31m\"red", "0::/\n");
  node_.AddContext("rxe0", 1, 100);
  ASSERT_EQ(Run(), kOk) << purser_.err.text();
  EXPECT_THAT(purser_.out.text(),
              AllOf(HasSubstr("\\u001b[31m"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(Run({"-o", "json"}), kOk);
  EXPECT_THAT(purser_.out.text(), Not(HasSubstr("\x1b")));
}

TEST_F(NodeCommandTest, ManyProcessesAreNamedInPart) {
  for (int pid = 100; pid < 105; ++pid) {
    node_.proc.AddProcess(pid, "app", "0::/\n");
    node_.AddContext("rxe0", static_cast<uint32_t>(pid),
                     static_cast<uint32_t>(pid));
  }
  ASSERT_EQ(Run(), kOk) << purser_.err.text();
  EXPECT_THAT(purser_.out.text(), HasSubstr("app(102) and 2 more"));
}

TEST_F(NodeCommandTest, NothingIsSaidInWords) {
  node_.kernel.Clear("rxe0");
  ASSERT_EQ(Run(), kOk) << purser_.err.text();
  EXPECT_THAT(purser_.out.text(), HasSubstr("nobody holds an RDMA queue"));
}

TEST_F(NodeCommandTest, WhatCouldNotBeReadIsNotSaidToBeNothing) {
  purser_.open_netlink = []() {
    return absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>>(
        absl::UnavailableError("no socket"));
  };
  ASSERT_EQ(Run(), kFailure) << purser_.err.text();
  EXPECT_THAT(
      purser_.out.text(),
      AllOf(Not(HasSubstr("nobody")),
            HasSubstr("who holds RDMA queues cannot be told"),
            HasSubstr("without netlink (failed): no socket"),
            HasSubstr("without raw_context (not_read): what it adds to")));
  EXPECT_EQ(Run({"-o", "json"}), kFailure);
}

TEST_F(NodeCommandTest, AllocationsOfWhicheverPrefix) {
  AddHolder();
  ASSERT_EQ(Run({"--resource-prefix", ""}), kOk) << purser_.err.text();
  EXPECT_THAT(purser_.out.text(),
              AllOf(HasSubstr("rdma/wqe-mib"), HasSubstr("nvidia.com/gpu")));
}

TEST_F(NodeCommandTest, AsksNoSidecarAndRefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Run({"-o", "xml"}), kUsage);
  EXPECT_THAT(purser_.err.text(), HasSubstr("none of table, json"));
}

}  // namespace
}  // namespace purser::cli
