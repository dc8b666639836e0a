// SPDX-License-Identifier: Apache-2.0
//
// Clients and sidecars that are killed under load, at any moment: nothing that
// they had stays behind, and nothing that others have is lost. PURSER_KILLS is
// how many clients; a fifth as many sidecars.
#include <signal.h>

#include <cstdlib>
#include <list>
#include <random>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "tests/integration/sidecar_fixture.h"

namespace purser::integration {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

int Kills() {
  const char* kills = std::getenv("PURSER_KILLS");
  return kills != nullptr ? std::max(1, std::atoi(kills)) : 150;
}

class SidecarKillTest : public SidecarProcessTest {
 protected:
  // Clients that create queue pairs by the sidecar, and such that have leases
  // of their own, in turn.
  Process Client(bool again = false) {
    if (++started_ % 3 == 0)
      return Process({fakes::BuiltPath("tests/integration/ledger_worker"),
                      tree_.path("run/ledger"), "reserve", "10000", "cycle",
                      "1000000", "7", "hold"});
    std::vector<std::string> arguments = {
        fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "3"};
    if (again) arguments.push_back("again");
    return Process(arguments);
  }
  void Pause() {
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 20000));
  }
  static void Kill(Process& process) {
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait(kLong), 128 + SIGKILL) << process.output();
  }
  // What the issue of a kill may take.
  void ExpectUsedWithinTwoSeconds(uint64_t bytes) {
    const auto begin = Clock::now();
    while (UsedBytes() != bytes && Clock::now() - begin < kLong)
      std::this_thread::sleep_for(5ms);
    EXPECT_EQ(UsedBytes(), bytes);
    EXPECT_LT(Clock::now() - begin, 2s);
  }

  std::mt19937 random_{1};
  int started_ = 0;
};

TEST_F(SidecarKillTest, ClientsThatAreKilledLeaveNothing) {
  Process sidecar = StartServing();
  Process stays(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "2"});
  ASSERT_TRUE(stays.WaitForOutput("holding 2", kLong)) << stays.output();
  const uint64_t before = UsedBytes();
  std::list<Process> clients;
  for (int i = 0; i < Kills(); ++i) {
    while (clients.size() < 6) clients.push_back(Client());
    Pause();
    auto victim = clients.begin();
    std::advance(victim, random_() % clients.size());
    Kill(*victim);
    clients.erase(victim);
    if (i % 25 == 0) {
      EXPECT_LE(UsedBytes(), 8u << 20);
    }
  }
  for (Process& client : clients) Kill(client);
  ExpectUsedWithinTwoSeconds(before);
  const std::string metrics = Get(sidecar, "/metrics");
  EXPECT_THAT(metrics, HasSubstr("purser_ledger_slots_taken 0\n"));
  EXPECT_THAT(metrics, HasSubstr("purser_ledger_repaired_words_total 0\n"));
  sidecar.Signal(SIGTERM);
  EXPECT_EQ(sidecar.Wait(kLong), 0) << sidecar.output();
}

TEST_F(SidecarKillTest, SidecarsThatAreKilledLoseNoLease) {
  Process first = StartServing();
  Process keeper({fakes::BuiltPath("tests/integration/ledger_worker"),
                  tree_.path("run/ledger"), "reserve", "1000000", "hold"});
  ASSERT_TRUE(keeper.WaitForOutput("holding", kLong)) << keeper.output();
  std::list<Process> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Client(/*again=*/true));
  Kill(first);
  for (int i = 0; i < Kills() / 5; ++i) {
    Process sidecar = StartServing();
    EXPECT_GE(UsedBytes(), 2'000'000u) << "the lease of who lives";
    EXPECT_LE(UsedBytes(), 8u << 20);
    Pause();
    Kill(sidecar);
  }
  Process last = StartServing();
  for (Process& client : clients) Kill(client);
  ExpectUsedWithinTwoSeconds(2'000'000);
  Kill(keeper);
  ExpectUsedWithinTwoSeconds(0);
  EXPECT_THAT(Get(last, "/metrics"),
              HasSubstr("purser_ledger_repaired_words_total 0\n"));
  last.Signal(SIGTERM);
  EXPECT_EQ(last.Wait(kLong), 0) << last.output();
}

}  // namespace
}  // namespace purser::integration
