// SPDX-License-Identifier: Apache-2.0
#include "plugin/health_debounce.h"

#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;

class HealthDebounceTest : public ::testing::Test {
 protected:
  bool Tell(bool healthy, std::chrono::milliseconds at,
            const std::string& device = "mlx5_0") {
    return debounce_.Tell(device, healthy, start_ + at);
  }
  std::optional<std::chrono::milliseconds> Next() {
    const auto next = debounce_.next();
    if (!next) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(*next -
                                                                 start_);
  }

  const HealthDebounce::TimePoint start_ = std::chrono::steady_clock::now();
  HealthDebounce debounce_{1000ms};
};

TEST_F(HealthDebounceTest, AChangeThatStandsAloneIsToldAtOnce) {
  EXPECT_TRUE(Tell(true, 0ms));
  EXPECT_FALSE(Tell(false, 10ms));
  EXPECT_EQ(Next(), std::nullopt);
  EXPECT_TRUE(Tell(true, 1010ms));
}

TEST_F(HealthDebounceTest, OneThatFollowsAnotherMustLast) {
  Tell(true, 0ms);
  EXPECT_FALSE(Tell(false, 100ms));
  EXPECT_FALSE(Tell(true, 300ms));
  EXPECT_EQ(Next(), 1300ms);
  EXPECT_FALSE(Tell(true, 1299ms));
  EXPECT_TRUE(Tell(true, 1300ms));
  EXPECT_EQ(Next(), std::nullopt);
}

TEST_F(HealthDebounceTest, AFlappingLinkStaysAsItWasToldFirst) {
  Tell(true, 0ms);
  int changes_told = 0;
  bool told = true;
  for (int i = 1; i <= 100; ++i) {
    const bool now = Tell(i % 2 == 0, i * 300ms);
    changes_told += now != told;
    told = now;
  }
  EXPECT_EQ(changes_told, 1);
  EXPECT_FALSE(told);
  EXPECT_EQ(Next(), 31000ms);  // it ended up
  EXPECT_TRUE(Tell(true, 31000ms));
}

TEST_F(HealthDebounceTest, WhatChangesBackIsNotToldAtAll) {
  Tell(true, 0ms);
  Tell(false, 100ms);
  Tell(true, 200ms);
  EXPECT_FALSE(Tell(false, 300ms));
  EXPECT_EQ(Next(), std::nullopt);
  EXPECT_FALSE(Tell(false, 5000ms));
}

TEST_F(HealthDebounceTest, DevicesDoNotConcernEachOther) {
  Tell(true, 0ms);
  Tell(true, 0ms, "mlx5_1");
  EXPECT_FALSE(Tell(false, 100ms));
  EXPECT_FALSE(Tell(false, 200ms, "mlx5_1"));
  Tell(true, 300ms, "mlx5_1");
  Tell(true, 200ms);
  EXPECT_EQ(Next(), 1200ms);
}

TEST_F(HealthDebounceTest, ADeviceThatReturnsStartsAnew) {
  Tell(true, 0ms);
  Tell(false, 100ms);
  debounce_.Keep({"mlx5_1"});
  EXPECT_TRUE(Tell(true, 200ms));
  debounce_.Keep({"mlx5_0"});
  EXPECT_FALSE(Tell(false, 300ms));
  EXPECT_FALSE(Tell(true, 400ms));
}

TEST_F(HealthDebounceTest, MayBeSwitchedOff) {
  debounce_ = HealthDebounce(0ms);
  EXPECT_TRUE(Tell(true, 0ms));
  EXPECT_FALSE(Tell(false, 0ms));
  EXPECT_TRUE(Tell(true, 0ms));
}

}  // namespace
}  // namespace purser::plugin
