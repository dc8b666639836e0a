// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/refresh_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using Step = RefreshSchedule::Step;

struct Did {
  milliseconds at;
  Step step;
  RefreshCause cause;
  bool operator==(const Did&) const = default;
};
void PrintTo(const Did& did, std::ostream* out) {
  *out << did.at.count() << " ms "
       << (did.step == Step::kLook ? "look" : "scan") << " "
       << RefreshCauseName(did.cause);
}

class RefreshScheduleTest : public ::testing::Test {
 protected:
  RefreshSchedule::TimePoint At(milliseconds time) const {
    return start_ + time;
  }
  void Event(milliseconds at, RefreshCause cause = RefreshCause::kRtnetlink) {
    schedule_.OnEvent(cause, At(at));
  }
  // What a main loop does until then.
  std::vector<Did> RunUntil(milliseconds until) {
    std::vector<Did> all;
    while (schedule_.next() <= At(until)) {
      now_ = std::max(now_, schedule_.next());
      const auto due = schedule_.Take(now_);
      if (!due) {
        ADD_FAILURE() << "nothing is due at the time that it said";
        break;
      }
      all.push_back({std::chrono::duration_cast<milliseconds>(now_ - start_),
                     due->step, due->cause});
      if (due->step == Step::kLook) {
        schedule_.Looked(now_);
      } else {
        schedule_.Scanned(now_, now_ + scan_takes_);
        now_ += scan_takes_;
      }
    }
    now_ = At(until);
    return all;
  }

  const RefreshSchedule::TimePoint start_ = RefreshSchedule::Clock::now();
  RefreshSchedule::TimePoint now_ = start_;
  milliseconds scan_takes_{2};
  RefreshSchedule schedule_{{.look = 1000ms, .scan = 2500ms}, start_};
};

TEST_F(RefreshScheduleTest, WithoutEventsItLooksAndScansByTheClock) {
  EXPECT_THAT(RunUntil(3600ms),
              ElementsAre(Did{1000ms, Step::kLook, RefreshCause::kLook},
                          Did{2000ms, Step::kLook, RefreshCause::kLook},
                          Did{2500ms, Step::kScan, RefreshCause::kTimer},
                          Did{3500ms, Step::kLook, RefreshCause::kLook}));
}

TEST_F(RefreshScheduleTest, AnEventIsLookedAtNowAndAgain) {
  RunUntil(100ms);
  Event(100ms);
  constexpr auto kCause = RefreshCause::kRtnetlink;
  EXPECT_THAT(
      RunUntil(400ms),
      ElementsAre(
          Did{100ms, Step::kLook, kCause}, Did{105ms, Step::kLook, kCause},
          Did{110ms, Step::kLook, kCause}, Did{120ms, Step::kLook, kCause},
          Did{130ms, Step::kScan, kCause}, Did{140ms, Step::kLook, kCause},
          Did{180ms, Step::kLook, kCause}, Did{300ms, Step::kLook, kCause}));
}

TEST_F(RefreshScheduleTest, AStormIsCoalesced) {
  scan_takes_ = 20ms;
  size_t looks = 0, scans = 0;
  for (milliseconds at = 100ms; at < 1100ms; at += 1ms) {
    Event(at);
    for (const Did& did : RunUntil(at))
      ++(did.step == Step::kLook ? looks : scans);
  }
  EXPECT_LE(looks, 200u);
  EXPECT_GE(looks, 100u);
  // A tenth of the time.
  EXPECT_LE(scans, 6u);
  EXPECT_GE(scans, 4u);
}

TEST_F(RefreshScheduleTest, AScanBeforeTheEventsTimeIsFollowedByAnother) {
  RunUntil(100ms);
  Event(100ms, RefreshCause::kUevents);
  // The first look shows a change: a scan.
  schedule_.Scanned(At(101ms), At(103ms));
  size_t scans = 0;
  for (const Did& did : RunUntil(1000ms)) scans += did.step == Step::kScan;
  EXPECT_EQ(scans, 1u);
}

TEST_F(RefreshScheduleTest, AGlanceIsFollowedByAScan) {
  // After an event: by the event's.
  RunUntil(100ms);
  Event(100ms, RefreshCause::kUevents);
  schedule_.Glanced(At(145ms));
  const auto due = schedule_.Take(At(146ms));
  ASSERT_TRUE(due);
  EXPECT_EQ(due->step, Step::kScan);
  EXPECT_EQ(due->cause, RefreshCause::kUevents);
  RunUntil(1000ms);
  // By the clock: by one of its own.
  schedule_.Glanced(At(1000ms));
  EXPECT_EQ(schedule_.next(), At(1030ms));
  EXPECT_EQ(schedule_.Take(At(1030ms))->step, Step::kScan);
  EXPECT_EQ(schedule_.Take(At(1030ms))->cause, RefreshCause::kLook);
}

TEST_F(RefreshScheduleTest, WhatIsHeldBackIsToldInTime) {
  schedule_.HoldBackUntil(At(300ms));
  EXPECT_EQ(schedule_.next(), At(300ms));
  const auto due = schedule_.Take(At(300ms));
  ASSERT_TRUE(due);
  EXPECT_EQ(due->step, Step::kScan);
  EXPECT_EQ(due->cause, RefreshCause::kDebounce);
  schedule_.HoldBackUntil(std::nullopt);
  EXPECT_EQ(schedule_.next(), At(1000ms));
}

TEST_F(RefreshScheduleTest, MayGoWithoutATimer) {
  RefreshSchedule schedule({.look = 1000ms, .scan = 0ms}, start_);
  EXPECT_EQ(schedule.next(), At(1000ms));
  EXPECT_EQ(schedule.Take(At(1h))->step, Step::kLook);
}

// A machine that stood still: one look makes up for those missed.
TEST_F(RefreshScheduleTest, LateLooksAreNotMadeUpFor) {
  Event(0ms);
  now_ = At(150ms);
  EXPECT_THAT(RunUntil(190ms),
              ElementsAre(Did{150ms, Step::kScan, RefreshCause::kRtnetlink}));
}

}  // namespace
}  // namespace purser::plugin
