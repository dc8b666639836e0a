// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"
#include "tests/unit/cli/cli_fixture.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// It asks no sidecar, so there is none.
class CheckCommandTest : public testing::Test {
 protected:
  int Run(std::vector<std::string> arguments) {
    purser_ = std::make_unique<Purser>();
    purser_->find_device = find_device_;
    purser_->read_machine = [] { return planner::Machine{}; };
    purser_->read_counters = [](const std::string& device) {
      return std::vector<planner::Counter>{{device + " port 1 send_err", 4}};
    };
    arguments.insert(arguments.begin(), "check");
    return (*purser_)(arguments);
  }
  std::string out() const { return purser_->out.text(); }
  std::string err() const { return purser_->err.text(); }

  fakes::FileTree tree_;
  std::function<absl::StatusOr<planner::Device>(const std::string&)>
      find_device_ = [](const std::string& name) {
        return planner::Device{.name = name.empty() ? "rxe7" : name,
                               .provider = queue_memory::Provider::kRxe,
                               .counts = {.max_qp = 5},
                               .opened = true};
      };
  std::unique_ptr<Purser> purser_;
};

TEST_F(CheckCommandTest, TheOnlyDeviceOfThisMachine) {
  EXPECT_EQ(Run({"--count", "5"}), kOk) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("rxe7: rxe"), HasSubstr("0 failures")));
  EXPECT_EQ(Run({"--count", "6"}), kRefused);
  EXPECT_THAT(out(), HasSubstr("failure  max_qp "));
}

TEST_F(CheckCommandTest, WarningsAreFailuresWhereStrict) {
  EXPECT_EQ(Run({"--strict"}), kRefused);
}

TEST_F(CheckCommandTest, WhereThereIsNoDeviceTheFileNamesItsProvider) {
  find_device_ = [](const std::string&) {
    return absl::NotFoundError("no RDMA device");
  };
  EXPECT_EQ(Run({}), kFailure);
  EXPECT_EQ(err(), "purser: no RDMA device\n");
  tree_.Write("w.yaml",
              "version: v1\nprovider: mlx5\ngroups: [{name: a, maxSendWr: "
              "16384}]\n");
  EXPECT_EQ(Run({tree_.path("w.yaml")}), kRefused) << err();
  EXPECT_THAT(out(), HasSubstr("failure  ring_size "));
  EXPECT_EQ(Run({tree_.path("w.yaml"), "--provider", "rxe"}), kOk) << err();
  find_device_ = [](const std::string&) {
    return absl::InvalidArgumentError("several");
  };
  EXPECT_EQ(Run({tree_.path("w.yaml")}), kUsage);
}

TEST_F(CheckCommandTest, BuffersAndBudget) {
  EXPECT_EQ(Run({"--buffer", "1Mix2", "--budget", "64Mi"}), kOk) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("2 memory regions"),
                           HasSubstr("of a budget of 64 MiB")));
  EXPECT_EQ(Run({"--budget", "1Ki"}), kRefused);
  EXPECT_EQ(Run({"--buffer", "x"}), kUsage);
  EXPECT_THAT(err(), HasSubstr("--buffer: \"x\""));
}

TEST_F(CheckCommandTest, Explains) {
  EXPECT_EQ(Run({"--explain", "EINVAL", "--request",
                 "type=rc,send-wr=4294967295,send-sge=4"}),
            kRefused)
      << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("rc, send 4294967295 x 4"),
                           HasSubstr("rxe7 port 1 send_err 4"),
                           HasSubstr("failure  verdict")));
  EXPECT_EQ(Run({"--explain", "EINVAL", "--request", "srq-wr=10"}), kOk)
      << err();
}

TEST_F(CheckCommandTest, TheKernelTellsWhatIsWrittenBack) {
  const std::vector<std::string> asked = {"--explain",        "EINVAL",
                                          "--request",        "send-wr=100",
                                          "--kernel-version", "6.6"};
  EXPECT_EQ(Run(asked), kOk) << err();
  EXPECT_THAT(out(), HasSubstr("is granted as send 127 x "));
  std::vector<std::string> older = asked;
  older.back() = "6.1";
  EXPECT_EQ(Run(older), kOk) << err();
  EXPECT_THAT(out(), HasSubstr("is granted as send 100 x "));
}

TEST_F(CheckCommandTest, Json) {
  EXPECT_EQ(Run({"-o", "json"}), kOk);
  EXPECT_THAT(out(), HasSubstr("\"result\": \"warning\""));
}

TEST_F(CheckCommandTest, WhatIsWrongIsTold) {
  const struct {
    std::vector<std::string> arguments;
    std::string message;
  } kCases[] = {
      {{"--request", "send-wr=1"}, "requires"},
      {{"--explain", "EINVAL"}, "--explain needs what was asked"},
      {{"--explain", "EBADF", "--send-wr", "1"},
       "no explanation for \"EBADF\""},
      {{"--explain", "EINVAL", "--request", "send-wr"}, "has no ="},
      {{"--explain", "EINVAL", "--request", "send-wr=x"}, "is no number"},
      {{"--explain", "EINVAL", "--request", "send-wq=1"},
       "(did you mean \"send-wr\"?)"},
      {{"--explain", "EINVAL", "--strict"}, "excludes"},
      {{"--type", "rd"}, "--type: "},
      {{"--type", "dci", "--srq-wr", "10"}, "--srq-wr: dci queue pairs have"},
      {{"--explain", "EINVAL", "--request", "send-wr=1", "--send-wr", "2"},
       "--request and --send-wr both say send-wr: remove one"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Run(c.arguments), kUsage) << c.message;
    EXPECT_THAT(err(), HasSubstr(c.message));
    EXPECT_EQ(out(), "");
  }
}

TEST_F(CheckCommandTest, ARequestThatContradictsItself) {
  const struct {
    std::string request, message;
  } kCases[] = {
      {"send-wr=1,send-wr=1", "\"send-wr=1\": is given twice"},
      {"srq-wr=9,recv-wr=5",
       "--request: srq-wr contradicts recv-wr: a shared receive queue has"},
      {"recv-sge=1,srq-wr=9", "srq-wr contradicts recv-sge"},
      {"srq-sge=1", "srq-sge needs srq-wr"},
      {"srq-wr=0", "is no shared receive queue: leave it out"},
      {"type=XRC_SEND,recv-wr=5", "recv-wr: xrc_send queue pairs have no"},
      {"type=dci,srq-wr=5", "srq-wr: dci queue pairs have no receives"},
      {"send-wr=4294967296", "is no number of 32 bits"},
      {"", "requires"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Run({"--explain", "EINVAL", "--request", c.request}), kUsage)
        << c.request;
    if (!c.request.empty()) {
      EXPECT_THAT(err(), HasSubstr(c.message));
    }
  }
  EXPECT_EQ(Run({"--explain", "EINVAL", "--request", "send-wr=0,recv-wr=0",
                 "--count", "2"}),
            kOk)
      << err();
}

TEST_F(CheckCommandTest, ReadsTheMachine) {
  tree_.Write("proc/meminfo",
              "MemTotal: 8 kB\nMemAvailable: 4 kB\nHugePages_Free: 3\n"
              "Hugepagesize: 2048 kB\n");
  const planner::Machine machine =
      ReadMachine(tree_.path("cgroup"), tree_.path("proc"), "HUGE");
  ASSERT_TRUE(machine.node.ok()) << machine.node.status();
  EXPECT_EQ(machine.node->available_bytes, 4096u);
  ASSERT_TRUE(machine.huge_pages.ok()) << machine.huge_pages.status();
  EXPECT_EQ(machine.huge_pages->free_pages, 3u);
  EXPECT_EQ(machine.huge_pages->page_bytes, 2u << 20);
  EXPECT_FALSE(machine.memlock.ok());
  EXPECT_EQ(machine.ring_allocator, "HUGE");
  EXPECT_EQ(ReadMachine("/x", "/x", nullptr).ring_allocator, "");

  tree_.Write("sys/class/infiniband/rxe0/ports/1/hw_counters/send_err", "7\n");
  const auto counters = ReadCounters(tree_.path("sys"), "rxe0");
  ASSERT_TRUE(counters.ok()) << counters.status();
  ASSERT_EQ(counters->size(), 1u);
  EXPECT_EQ((*counters)[0].name, "rxe0 port 1 send_err");
  EXPECT_EQ((*counters)[0].value, 7u);
}

}  // namespace
}  // namespace purser::cli
