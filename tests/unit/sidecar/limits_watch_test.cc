// SPDX-License-Identifier: Apache-2.0
#include "sidecar/limits_watch.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

class LimitsWatchTest : public testing::Test {
 protected:
  LimitsWatchTest() { ledger::Ledger::Format(state_); }

  static Budget Of(uint64_t bytes, std::optional<uint64_t> limit = {}) {
    BudgetInputs inputs;
    inputs.explicit_bytes = bytes;
    inputs.cgroup = base::CgroupMemory{
        .version = 2, .max_bytes = limit, .max_origin = "memory.max"};
    inputs.memlock = base::MemlockLimit{};
    return DetermineBudget(inputs).value();
  }
  LimitSources Sources() {
    return {.budget = [this] { return budget_; },
            .container = [this] { return container_; },
            .node = [this] { return node_; }};
  }
  LimitsWatch Watch() {
    return LimitsWatch(
        Sources(), admission_, counters_,
        [this](PressureScope scope, const Pressure& pressure) {
          EXPECT_EQ(admission_.pressure(scope).state, pressure.state);
          told_.push_back(std::string(PressureScopeName(scope)) + " " +
                          PressureStateName(pressure.state));
        },
        [this] { ++given_back_; }, {});
  }
  void After(LimitsWatch& watch, std::chrono::milliseconds time) {
    now_ += time;
    watch.Look(now_);
  }
  PressureState State(PressureScope scope) {
    return admission_.pressure(scope).state;
  }

  ledger::LedgerState state_;
  absl::StatusOr<Budget> budget_ = Of(64 * kMiB);
  absl::StatusOr<base::CgroupUsage> container_ = base::CgroupUsage{};
  absl::StatusOr<LimitSources::Node> node_ =
      LimitSources::Node{.total_bytes = 1000, .available_bytes = 900};
  Admission admission_{ledger::Ledger(&state_), Of(64 * kMiB)};
  Counters counters_;
  std::vector<std::string> told_;
  int given_back_ = 0;
  LimitsWatch::TimePoint now_ = std::chrono::steady_clock::now() + 1h;
};

TEST_F(LimitsWatchTest, FollowsALimitThatIsChangedInPlace) {
  LimitsWatch watch = Watch();
  EXPECT_EQ(admission_.budget()->container_bound(), nullptr);
  for (const uint64_t limit : {100 * kMiB, 50 * kMiB, 200 * kMiB}) {
    budget_ = Of(64 * kMiB, limit);
    After(watch, 1s);
    ASSERT_NE(admission_.budget()->container_bound(), nullptr);
    EXPECT_EQ(admission_.budget()->container_bound()->limit_bytes, limit / 2);
    EXPECT_EQ(ledger::Ledger(&state_).balance().container_bound, limit / 2);
  }
}

TEST_F(LimitsWatchTest, ALimitBelowWhatIsInUseTakesNothingAway) {
  LimitsWatch watch = Watch();
  ledger::Ledger ledger(&state_);
  ASSERT_TRUE(ledger.Reserve({.container = 40 * kMiB}).ok());
  budget_ = Of(64 * kMiB, 60 * kMiB);
  After(watch, 1s);
  EXPECT_EQ(admission_.OvercommittedBytes(), 10 * kMiB);
  EXPECT_EQ(ledger.balance().held.container, 40 * kMiB);
  EXPECT_FALSE(ledger.Reserve({.container = 1}).ok());
  ledger.Release({.container = 11 * kMiB});
  EXPECT_EQ(admission_.OvercommittedBytes(), 0u);
  EXPECT_TRUE(ledger.Reserve({.container = kMiB}).ok());
}

TEST_F(LimitsWatchTest, GivesBackAtEveryLookWhileMemoryIsCritical) {
  LimitsWatch watch = Watch();
  for (const auto& [available, given_back] :
       {std::pair(80, 0), std::pair(40, 1), std::pair(40, 2)}) {
    node_->available_bytes = static_cast<uint64_t>(available);
    After(watch, 1s);
    EXPECT_EQ(given_back_, given_back) << available;
  }
  node_->available_bytes = 900;
  while (State(PressureScope::kNode) != PressureState::kNormal)
    After(watch, 1s);
  const int before = given_back_;
  After(watch, 1s);
  EXPECT_EQ(given_back_, before);
  container_->limit_bytes = 100;
  container_->working_set_bytes = 99;
  After(watch, 1s);
  EXPECT_EQ(given_back_, before + 1) << "whichever scope is critical";
}

TEST_F(LimitsWatchTest, ABudgetThatCannotBeReadStays) {
  LimitsWatch watch = Watch();
  budget_ = absl::InternalError("no such file");
  After(watch, 1s);
  ASSERT_NE(admission_.budget()->total_bound(), nullptr);
  EXPECT_EQ(admission_.budget()->total_bound()->limit_bytes, 64 * kMiB);
}

TEST_F(LimitsWatchTest, ABoundThatCannotBeReadAnyMoreStays) {
  budget_ = Of(64 * kMiB, 20 * kMiB);
  LimitsWatch watch = Watch();
  ASSERT_NE(admission_.budget()->container_bound(), nullptr);
  BudgetInputs unreadable;
  unreadable.explicit_bytes = 64 * kMiB;
  unreadable.cgroup = absl::InternalError("memory.max holds garbage");
  unreadable.memlock = base::MemlockLimit{};
  budget_ = DetermineBudget(unreadable);
  ASSERT_TRUE(budget_.ok());
  After(watch, 1s);
  ASSERT_NE(admission_.budget()->container_bound(), nullptr);
  EXPECT_EQ(admission_.budget()->container_bound()->limit_bytes, 10 * kMiB);
  // A limit that was taken away is gone.
  budget_ = Of(64 * kMiB);
  After(watch, 1s);
  EXPECT_EQ(admission_.budget()->container_bound(), nullptr);
}

TEST_F(LimitsWatchTest, TellsEachChangeOfPressureOnce) {
  LimitsWatch watch = Watch();
  node_->available_bytes = 80;
  for (int i = 0; i < 3; ++i) After(watch, 1s);
  EXPECT_THAT(told_, ElementsAre("node tight"));
  EXPECT_THAT(admission_.pressure(PressureScope::kNode).why,
              HasSubstr("80 B of 1000 B available"));
  node_->available_bytes = 20;
  After(watch, 1s);
  node_->available_bytes = 500;
  for (int i = 0; i < 12; ++i) After(watch, 1s);
  EXPECT_THAT(told_, ElementsAre("node tight", "node critical", "node tight",
                                 "node normal"));
  EXPECT_EQ(counters_.pressure_changes.Snapshot().size(), 3u);
  EXPECT_EQ(State(PressureScope::kContainer), PressureState::kNormal);
}

TEST_F(LimitsWatchTest, FeelsTheContainerByItsWorkingSetAndEvents) {
  container_->limit_bytes = 1000;
  container_->out_of_memory = 3;  // before the sidecar started
  LimitsWatch watch = Watch();
  EXPECT_THAT(told_, IsEmpty());
  container_->working_set_bytes = 860;
  After(watch, 1s);
  container_->out_of_memory = 4;
  After(watch, 1s);
  EXPECT_THAT(told_, ElementsAre("container tight", "container critical"));
}

TEST_F(LimitsWatchTest, PressureThatCannotBeReadStays) {
  node_->available_bytes = 20;
  LimitsWatch watch = Watch();
  EXPECT_THAT(told_, ElementsAre("node critical"));
  node_ = absl::NotFoundError("no /proc/meminfo");
  container_ = absl::NotFoundError("no cgroup");
  for (int i = 0; i < 20; ++i) After(watch, 1s);
  EXPECT_EQ(State(PressureScope::kNode), PressureState::kCritical);
}

TEST_F(LimitsWatchTest, TheThreadLooksAndEndsAtOnce) {
  Counters counters;
  std::mutex mutex;
  std::condition_variable changed;
  int looks = 0;
  LimitSources sources = Sources();
  sources.node = [&] {
    std::lock_guard lock(mutex);
    ++looks;
    changed.notify_all();
    return node_;
  };
  LimitsWatch watch(
      std::move(sources), admission_, counters,
      [](PressureScope, const Pressure&) {}, [] {}, {.look_every = 1ms});
  watch.Start();
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, 60s, [&] { return looks >= 3; }));
}

}  // namespace
}  // namespace purser::sidecar
