// SPDX-License-Identifier: Apache-2.0
//
// The program `purser` against a purser-sidecar process on the verbs fake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/paths.h"
#include "tests/integration/process.h"

namespace purser::integration {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

// Generous: for loaded machines and sanitizers.
constexpr auto kLong = 60s;

class CliProcessTest : public testing::Test {
 protected:
  CliProcessTest() {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    tree_.Directory("run");
  }

  Process StartSidecar(const std::string& budget = "8Mi") {
    Process sidecar({fakes::BuiltPath("tests/integration/fake_sidecar"),
                     "--shared-volume=" + tree_.path("run"),
                     "--metrics-address=127.0.0.1:0", "--budget=" + budget,
                     "--sysfs-root=" + sysfs_.sysfs_root().string(),
                     "--dev-root=" + sysfs_.dev_root().string(),
                     "--cgroup-root=" + tree_.path("cgroup")});
    EXPECT_TRUE(sidecar.WaitForOutput("serving", kLong)) << sidecar.output();
    return sidecar;
  }
  Process Start(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{fakes::BuiltPath("cli/purser")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Process(arguments,
                   {"PURSER_SOCKET=" + tree_.path("run/sidecar.sock")});
  }
  struct Ended {
    int code;
    std::string output;
  };
  Ended Run(const std::vector<std::string>& arguments) const {
    Process purser = Start(arguments);
    const int code = purser.Wait(kLong).value_or(-1);
    return {code, purser.output()};
  }
  // Looks again until the listing is empty: a killed process' end is not an
  // event that this one sees.
  bool NothingLeftWithin(std::chrono::milliseconds timeout) const {
    const auto end = std::chrono::steady_clock::now() + timeout;
    do {
      if (Run({"qp", "list"}).output == "no queue pairs\n") return true;
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
};

TEST_F(CliProcessTest, CreatesListsCountsAndDestroys) {
  Process sidecar = StartSidecar();
  const Ended created =
      Run({"qp", "create", "--send-wr", "100", "--detach", "--name", "me"});
  EXPECT_EQ(created.code, 0) << created.output;
  EXPECT_THAT(created.output,
              AllOf(HasSubstr("queue pair 1 on rxe0: RC"), HasSubstr("127"),
                    HasSubstr("by the provider's own rule")));
  EXPECT_THAT(Run({"qp", "list"}).output,
              AllOf(HasSubstr("me (detached)"), HasSubstr("1 queue pair,")));
  EXPECT_THAT(Run({"qp", "list", "-o", "json"}).output,
              HasSubstr("\"clientName\": \"me\""));
  EXPECT_THAT(Run({"budget"}).output,
              AllOf(HasSubstr("*  explicit"), HasSubstr("8 MiB"),
                    HasSubstr("1 queue pair, 0 refusals")));
  EXPECT_EQ(Run({"qp", "destroy", "1"}).code, 0);
  EXPECT_EQ(Run({"qp", "destroy", "1"}).code, 1);
  EXPECT_EQ(Run({"qp", "list"}).output, "no queue pairs\n");
}

TEST_F(CliProcessTest, EachKindOfRefusalHasItsExitCode) {
  Process sidecar = StartSidecar("1Mi");
  const Ended budget =
      Run({"qp", "create", "--count", "100", "--send-wr", "256", "--detach"});
  EXPECT_EQ(budget.code, 3);
  EXPECT_THAT(budget.output,
              AllOf(HasSubstr("of 100 queue pairs"), HasSubstr("short by"),
                    HasSubstr("budget"), HasSubstr("1,048,576"),
                    HasSubstr("bound: explicit"), HasSubstr("what to do: ")));
  const Ended limit = Run({"qp", "create", "--send-wr", "4294967295"});
  EXPECT_EQ(limit.code, 3);
  EXPECT_THAT(limit.output, HasSubstr("max_qp_wr"));
  const Ended contradiction =
      Run({"qp", "create", "--send-wr", "0", "--recv-wr", "0"});
  EXPECT_EQ(contradiction.code, 2) << contradiction.output;
  const Ended device = Run({"qp", "create", "--device", "mlx9_0"});
  EXPECT_EQ(device.code, 1);
  EXPECT_THAT(device.output, HasSubstr("mlx9_0"));
}

// The largest max_send_wr that a refusal names does fit, and one more does not.
TEST_F(CliProcessTest, TheAdviceOfARefusalIsExact) {
  Process sidecar = StartSidecar("1Mi");
  const Ended refused = Run({"qp", "create", "--send-wr", "30000"});
  const std::string before = "largest max_send_wr that fits now: ";
  const size_t at = refused.output.find(before);
  ASSERT_NE(at, std::string::npos) << refused.output;
  const int largest = std::stoi(refused.output.substr(at + before.size()));
  const Ended above = Run(
      {"qp", "create", "--detach", "--send-wr", std::to_string(largest + 1)});
  EXPECT_EQ(above.code, 3) << above.output;
  const Ended fits =
      Run({"qp", "create", "--detach", "--send-wr", std::to_string(largest)});
  EXPECT_EQ(fits.code, 0) << fits.output;
}

TEST_F(CliProcessTest, HoldsUntilSigterm) {
  Process sidecar = StartSidecar();
  Process hold = Start({"qp", "create", "--count", "3"});
  ASSERT_TRUE(hold.WaitForOutput("holding 3 queue pairs", kLong))
      << hold.output();
  EXPECT_THAT(Run({"qp", "list"}).output, HasSubstr("3 queue pairs,"));
  EXPECT_EQ(Run({"qp", "destroy", "1"}).code, 1) << "another client's";
  hold.Signal(SIGTERM);
  EXPECT_EQ(hold.Wait(kLong), 0) << hold.output();
  EXPECT_EQ(Run({"qp", "list"}).output, "no queue pairs\n");
}

TEST_F(CliProcessTest, WhatAKilledHolderHeldIsReturned) {
  Process sidecar = StartSidecar();
  Process hold = Start({"qp", "create", "--count", "3"});
  ASSERT_TRUE(hold.WaitForOutput("holding", kLong)) << hold.output();
  hold.Signal(SIGKILL);
  EXPECT_TRUE(NothingLeftWithin(2s));
}

TEST_F(CliProcessTest, AHolderNoticesTheSidecarsEnd) {
  Process sidecar = StartSidecar();
  Process hold = Start({"qp", "create"});
  ASSERT_TRUE(hold.WaitForOutput("holding", kLong)) << hold.output();
  sidecar.Signal(SIGKILL);
  EXPECT_EQ(hold.Wait(kLong), 1);
  EXPECT_THAT(hold.output(), HasSubstr("is gone"));
  const Ended without = Run({"budget"});
  EXPECT_EQ(without.code, 4);
  EXPECT_THAT(without.output, HasSubstr("no sidecar answers"));
}

TEST_F(CliProcessTest, PingVerifiesDataBetweenTwoProcesses) {
  Process sidecar = StartSidecar();
  Process listener = Start({"qp", "ping", "--listen", "127.0.0.1:0"});
  const std::string before = "listening on port ";
  ASSERT_TRUE(listener.WaitForOutput("\n", kLong)) << listener.output();
  const std::string port =
      std::to_string(std::stoi(listener.output().substr(before.size())));
  const Ended ping =
      Run({"qp", "ping", "--connect", "127.0.0.1:" + port, "--iterations", "20",
           "--size", "1001", "--bytes", "4000001", "--chunk", "64Ki"});
  EXPECT_EQ(ping.code, 0) << ping.output;
  EXPECT_EQ(listener.Wait(kLong), 0) << listener.output();
  for (const std::string& output : {ping.output, listener.output()})
    EXPECT_THAT(output, HasSubstr("all 4,040,041 bytes"));
  EXPECT_EQ(Run({"qp", "list"}).output, "no queue pairs\n");
}

TEST_F(CliProcessTest, AListeningPingEndsByASignal) {
  Process sidecar = StartSidecar();
  Process listener = Start({"qp", "ping", "--listen", "127.0.0.1:0"});
  ASSERT_TRUE(listener.WaitForOutput("listening", kLong)) << listener.output();
  listener.Signal(SIGINT);
  EXPECT_EQ(listener.Wait(kLong), 128 + SIGINT);
}

TEST_F(CliProcessTest, FillFindsOutHowManyPostsAQueueTakes) {
  Process sidecar = StartSidecar();
  const Ended fill = Run({"qp", "fill", "--send-wr", "100"});
  EXPECT_EQ(fill.code, 0) << fill.output;
  EXPECT_THAT(fill.output, AllOf(HasSubstr("  posts it takes          127  by"),
                                 HasSubstr("  posted                  127\n"),
                                 HasSubstr("ENOMEM  errno 12")));
}

}  // namespace
}  // namespace purser::integration
