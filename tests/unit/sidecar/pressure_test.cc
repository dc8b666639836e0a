// SPDX-License-Identifier: Apache-2.0
#include "sidecar/pressure.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

using namespace std::chrono_literals;
using enum PressureState;
using testing::HasSubstr;

PressureReading Used(double used) {
  return {.used = used, .figures = "8 of 10 MiB"};
}

PressureReading Stalled(double some, double full) {
  return {.stall = base::MemoryStall{some, full}};
}

class PressureTest : public testing::Test {
 protected:
  // A second passes before each reading.
  PressureState After(const PressureReading& reading) {
    now_ += 1s;
    const PressureState before = tracker_.pressure().state;
    const bool changed = tracker_.Update(reading, now_);
    EXPECT_EQ(changed, before != tracker_.pressure().state);
    return tracker_.pressure().state;
  }
  PressureTracker tracker_{PressureThresholds{}};
  PressureTracker::TimePoint now_;
};

TEST_F(PressureTest, IsNormalWithoutALimit) { EXPECT_EQ(After({}), kNormal); }

TEST_F(PressureTest, EntersAWorseStateAtOnceAndSaysWhy) {
  EXPECT_EQ(After(Used(0.849)), kNormal);
  EXPECT_EQ(After(Used(0.85)), kTight);
  EXPECT_EQ(tracker_.pressure().why,
            "85.0 % in use (8 of 10 MiB), threshold 85.0 %");
  EXPECT_EQ(After(Used(0.95)), kCritical);
  EXPECT_THAT(tracker_.pressure().why, HasSubstr("threshold 95.0 %"));
}

TEST_F(PressureTest, JumpsOverTight) {
  EXPECT_EQ(After(Used(0.99)), kCritical);
}

TEST_F(PressureTest, LeavesOneStepAtATimeAfterACalm) {
  EXPECT_EQ(After(Used(0.99)), kCritical);
  std::vector<PressureState> states;
  for (int i = 0; i < 12; ++i) states.push_back(After(Used(0.1)));
  EXPECT_THAT(states,
              testing::ElementsAre(kCritical, kCritical, kCritical, kCritical,
                                   kCritical, kTight, kTight, kTight, kTight,
                                   kTight, kNormal, kNormal));
}

TEST_F(PressureTest, DoesNotFlapAtAThreshold) {
  EXPECT_EQ(After(Used(0.851)), kTight);
  After(Used(0.84));
  EXPECT_THAT(tracker_.pressure().why, HasSubstr("threshold 85.0 %"));
  // Below the threshold by less than a quarter of the distance of the two.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(After(Used(0.8251)), kTight);
  // Calm, but for one reading.
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(After(Used(i % 4 == 0 ? 0.86 : 0.5)), kTight);
}

TEST_F(PressureTest, FollowsStalls) {
  EXPECT_EQ(After(Stalled(9.9, 9.9)), kNormal);
  EXPECT_EQ(After(Stalled(10, 0)), kTight);
  EXPECT_THAT(tracker_.pressure().why, HasSubstr("tasks waited for memory"));
  EXPECT_EQ(After(Stalled(50, 10)), kCritical);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(After(Stalled(50, 5)), kCritical);
  for (int i = 0; i < 20; ++i) After(Stalled(5, 4.9));
  EXPECT_EQ(After(Stalled(5, 4.9)), kTight);
  for (int i = 0; i < 6; ++i) After(Stalled(4.9, 0));
  EXPECT_EQ(After(Stalled(4.9, 0)), kNormal);
}

TEST_F(PressureTest, RunningOutOfMemoryIsCritical) {
  PressureReading reading = Used(0.2);
  reading.out_of_memory = true;
  EXPECT_EQ(After(reading), kCritical);
  EXPECT_THAT(tracker_.pressure().why, HasSubstr("ran out of memory"));
}

// A limit that is met by file pages alone is how the kernel works.
TEST_F(PressureTest, ALimitThatWasHitCountsWhereTheWorkingSetIsNearIt) {
  PressureReading reading = Used(0.5);
  reading.limit_hit = true;
  EXPECT_EQ(After(reading), kNormal);
  reading.used = 0.83;
  EXPECT_EQ(After(reading), kTight);
  EXPECT_THAT(tracker_.pressure().why, HasSubstr("limit was reached"));
}

TEST(PressureNamesTest, AreThoseOfTheMetrics) {
  EXPECT_STREQ(PressureScopeName(PressureScope::kContainer), "container");
  EXPECT_STREQ(PressureScopeName(PressureScope::kNode), "node");
  EXPECT_STREQ(PressureStateName(kNormal), "normal");
  EXPECT_STREQ(PressureStateName(kTight), "tight");
  EXPECT_STREQ(PressureStateName(kCritical), "critical");
}

}  // namespace
}  // namespace purser::sidecar
