// SPDX-License-Identifier: Apache-2.0
//
// Real processes on one ledger: how they die, and that nothing is left.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/paths.h"
#include "tests/integration/process.h"
#include "tests/unit/ledger/pod.h"

namespace purser::ledger {
namespace {

using integration::Process;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPatience{30000};

class LedgerProcessTest : public testing::Test {
 protected:
  LedgerProcessTest() {
    pod_.SetBudget({1'000'000, 1'000'000, 1'000'000, 500});
  }

  std::unique_ptr<Process> Start(std::vector<std::string> commands,
                                 std::vector<std::string> wrapper = {}) {
    std::vector<std::string> arguments = std::move(wrapper);
    arguments.insert(
        arguments.end(),
        {fakes::BuiltPath("tests/integration/ledger_worker"), pod_.path()});
    arguments.insert(arguments.end(), commands.begin(), commands.end());
    return std::make_unique<Process>(arguments);
  }
  std::unique_ptr<Process> StartHolding(std::vector<std::string> commands,
                                        std::vector<std::string> wrapper = {}) {
    commands.push_back("hold");
    auto process = Start(std::move(commands), std::move(wrapper));
    EXPECT_TRUE(process->WaitForOutput("holding", kPatience))
        << process->output();
    return process;
  }
  // A child of it may keep its output open.
  static void Kill(Process& process) {
    process.Signal(SIGKILL);
    std::optional<int> code;
    for (auto end = Clock::now() + kPatience; !code && Clock::now() < end;)
      code = process.Wait(milliseconds(20));
    EXPECT_EQ(code, 128 + SIGKILL);
  }
  // The pid that a child said.
  static pid_t ChildOf(Process& process) {
    int pid = 0;
    if (process.WaitForOutput("child ", kPatience)) {
      const size_t at = process.output().find("child ");
      std::sscanf(process.output().c_str() + at, "child %d\n", &pid);
    }
    EXPECT_GT(pid, 1) << process.output();
    return pid;
  }
  // Not a whole group of them by mistake.
  static void KillChild(pid_t pid) {
    ASSERT_GT(pid, 1);
    EXPECT_EQ(kill(pid, SIGKILL), 0);
  }
  Findings Round() { return pod_.adjudicator().Adjudicate(); }
  // Until there are so many slots taken; what it found last.
  Findings RoundsUntil(uint32_t slots) {
    const auto deadline = Clock::now() + kPatience;
    Findings findings = Round();
    while (findings.leases.slots_taken != slots && Clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(5));
      findings = Round();
    }
    EXPECT_EQ(findings.leases.slots_taken, slots);
    return findings;
  }
  Pod pod_;
};

TEST_F(LedgerProcessTest, AKilledProcess) {
  auto process = StartHolding({"reserve", "100"});
  EXPECT_EQ(Round().leases.held, (Amounts{200, 100, 100, 1}));
  Kill(*process);
  EXPECT_EQ(Round().reclaimed, 1u);
  EXPECT_EQ(Round().leases.held, Amounts{});
}

TEST_F(LedgerProcessTest, AProcessThatEndsWithoutDetach) {
  EXPECT_EQ(Start({"reserve", "100"})->Wait(kPatience), 0);
  EXPECT_EQ(Round().reclaimed, 1u);
  EXPECT_EQ(Start({"reserve", "100", "detach"})->Wait(kPatience), 0);
  EXPECT_EQ(Round().reclaimed, 0u);
}

// A container has a pid namespace of its own, and dies with its first process.
TEST_F(LedgerProcessTest, AProcessInAnotherPidNamespace) {
  auto process = StartHolding({"reserve", "100"},
                              {"/usr/bin/unshare", "--user", "--map-root-user",
                               "--pid", "--fork", "--kill-child"});
  ASSERT_NE(process->output().find("holding 1\n"), std::string::npos)
      << process->output();
  EXPECT_EQ(Round().leases.slots_taken, 1u);
  EXPECT_EQ(Round().reclaimed, 0u);
  Kill(*process);
  RoundsUntil(0);
  EXPECT_EQ(pod_.adjudicator().counts().reclaimed, 1u);
}

// The child has a copy of the device's descriptor as well, so the queue pairs
// live as long as it does.
TEST_F(LedgerProcessTest, AForkedChildHoldsOn) {
  auto process = StartHolding({"reserve", "100", "fork"});
  const pid_t child = ChildOf(*process);
  Kill(*process);
  EXPECT_EQ(Round().reclaimed, 0u);
  EXPECT_EQ(Round().leases.held, (Amounts{200, 100, 100, 1}));
  KillChild(child);
  RoundsUntil(0);
  EXPECT_EQ(pod_.adjudicator().counts().reclaimed, 1u);
}

TEST_F(LedgerProcessTest, AForkedChildDoesNotGiveTheSlotAway) {
  auto process = StartHolding({"reserve", "100", "fork-detach"});
  EXPECT_EQ(Round().reclaimed, 0u);
  EXPECT_EQ(Round().leases.held, (Amounts{200, 100, 100, 1}));
  Kill(*process);
  EXPECT_EQ(Round().reclaimed, 1u);
}

TEST_F(LedgerProcessTest, ExecEndsTheLease) {
  auto process = Start({"reserve", "100", "exec"});
  EXPECT_EQ(ChildOf(*process), process->pid());
  EXPECT_EQ(Round().reclaimed, 1u);
  EXPECT_EQ(process->Wait(milliseconds(0)), std::nullopt) << "it lives";
}

TEST_F(LedgerProcessTest, AProgramThatItStartedDoesNotHold) {
  auto process = StartHolding({"reserve", "100", "spawn"});
  const pid_t child = ChildOf(*process);
  Kill(*process);
  EXPECT_EQ(Round().reclaimed, 1u);
  KillChild(child);
}

TEST_F(LedgerProcessTest, LeasesOutliveTheSidecarAndTheDeadAreFoundAfterIt) {
  auto living = StartHolding({"reserve", "100"});
  auto dead = StartHolding({"reserve", "1000"});
  pod_.Restart();
  Kill(*dead);
  pod_.SetBudget({1'000'000, 1'000'000, 1'000'000, 500});
  const Findings findings = Round();
  EXPECT_EQ(findings.reclaimed, 1u);
  EXPECT_EQ(findings.leases.held, (Amounts{200, 100, 100, 1}));
}

// 64 processes, of which some are killed at any instant and replaced by others;
// the sidecar looks all the while, restarts now and then, and takes its share.
TEST_F(LedgerProcessTest, SixtyFourProcessesThatAreKilledAtRandomEndAtZero) {
  constexpr int kProcesses = 64;
  constexpr uint64_t kBudget = 40000;
  std::mt19937 random(3);
  const Amounts budget = {kBudget, kBudget, kBudget, 500};
  pod_.SetBudget(budget);
  std::vector<std::unique_ptr<Process>> processes;
  const auto start = [&] {
    return Start({"cycle", "1000", std::to_string(random())});
  };
  for (int i = 0; i < kProcesses; ++i) processes.push_back(start());
  int killed = 0, ended = 0;
  while (ended < kProcesses) {
    const Findings findings = Round();
    ASSERT_EQ(findings.repaired, 0u);
    ASSERT_EQ(findings.error, 0);
    ended = 0;
    for (auto& process : processes) {
      const auto code = process->Wait(milliseconds(0));
      ASSERT_TRUE(!code.has_value() || *code == 0 || *code == 128 + SIGKILL)
          << *code << process->output();
      if (killed < 200 && random() % 8 == 0) {
        process->Signal(SIGKILL);
        ++killed;
        process = start();
      } else if (code.has_value()) {
        ++ended;
      }
    }
    if (random() % 10 == 0) {
      pod_.Restart();
      pod_.SetBudget(budget);
    }
  }
  processes.clear();
  const Findings findings = Round();
  EXPECT_EQ(findings.leases.held, Amounts{});
  EXPECT_EQ(findings.leases.slots_taken, 0u);
  EXPECT_EQ(Round().reclaimed, 0u);
  EXPECT_GE(killed, 200);
  const Counts counts = pod_.adjudicator().counts();
  EXPECT_GE(counts.granted + counts.refused, 64000u);
  EXPECT_GT(counts.reclaimed, 0u);
}

}  // namespace
}  // namespace purser::ledger
