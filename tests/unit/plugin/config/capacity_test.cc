// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/config/unit_limit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGi = uint64_t{1} << 30;

TEST(QueueMemoryUnits, CapacityFractionAndDefault) {
  EXPECT_EQ(QueueMemoryUnits({}, 3 * kGi).value(), 307u);
  EXPECT_EQ(QueueMemoryUnits({.capacity_bytes = 64 << 20}, 3 * kGi).value(),
            64u);
  EXPECT_EQ(QueueMemoryUnits({.node_memory_fraction = 0.5}, 4 * kGi).value(),
            2048u);
}

TEST(QueueMemoryUnits, ALargerUnitMakesFewer) {
  EXPECT_EQ(
      QueueMemoryUnits({.capacity_bytes = kGi, .unit_mib = 16}, 0).value(),
      64u);
  // Rounded down.
  EXPECT_EQ(
      QueueMemoryUnits({.capacity_bytes = 31 << 20, .unit_mib = 16}, 0).value(),
      1u);
  EXPECT_EQ(QueueMemoryUnits({.unit_mib = 16}, 3 * kGi).value(), 19u);
}

TEST(QueueMemoryUnits, WhatTheKubeletCannotTakeIsRefusedWithWhatItCan) {
  const absl::StatusOr<uint32_t> units =
      QueueMemoryUnits({.node_memory_fraction = 0.5}, 4096 * kGi);
  EXPECT_EQ(units.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(units.status().message());
  EXPECT_THAT(message, HasSubstr("2,097,152 units of 1 MiB"));
  EXPECT_THAT(message, HasSubstr(fmt::format("{}Mi, 0.0489 of the node's",
                                             LargestUnitCount())));
  EXPECT_THAT(message, HasSubstr("4,194,304"));
  EXPECT_THAT(message, HasSubstr("as rdma/wqe-16mib, set unit: 16Mi"));
}

// What a refusal proposes is not refused.
TEST(QueueMemoryUnits, TheLargestThatFitsAndTheUnitThatFitsDoFit) {
  const uint64_t largest = uint64_t{LargestUnitCount()} << 20;
  EXPECT_EQ(QueueMemoryUnits({.capacity_bytes = largest}, 0).value(),
            LargestUnitCount());
  EXPECT_FALSE(
      QueueMemoryUnits({.capacity_bytes = largest + (1 << 20)}, 0).ok());
  EXPECT_EQ(QueueMemoryUnits({.capacity_bytes = 2048 * kGi, .unit_mib = 16}, 0)
                .value(),
            131'072u);
  EXPECT_FALSE(
      QueueMemoryUnits({.capacity_bytes = 2048 * kGi, .unit_mib = 8}, 0).ok());
  const std::string message(
      QueueMemoryUnits({.capacity_bytes = 8192 * kGi, .unit_mib = 16}, 0)
          .status()
          .message());
  EXPECT_THAT(message, HasSubstr("524,288 units of 16 MiB"));
  EXPECT_THAT(message,
              HasSubstr(fmt::format("{}Mi;", LargestUnitCount() * 16)));
  EXPECT_THAT(message, HasSubstr("set unit: 64Mi"));
}

TEST(QueueMemoryUnits, TheDefaultFitsEveryNode) {
  EXPECT_EQ(QueueMemoryUnits({}, 65536 * kGi).value(), LargestUnitCount());
}

TEST(QueueMemoryUnits, LessThanAUnitIsRefused) {
  const absl::Status small =
      QueueMemoryUnits({.node_memory_fraction = 0.0001}, kGi).status();
  EXPECT_EQ(small.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(small.message()), HasSubstr("less than 1Mi"));
  EXPECT_THAT(std::string(QueueMemoryUnits(
                              {.capacity_bytes = 15 << 20, .unit_mib = 16}, 0)
                              .status()
                              .message()),
              HasSubstr("less than 16Mi"));
}

TEST(QueuePairUnits, LessTheReserve) {
  EXPECT_EQ(QueuePairUnits({}, 1000).value(), 980u);
  EXPECT_EQ(QueuePairUnits({.reserve = 1}, 1000).value(), 999u);
  EXPECT_EQ(QueuePairUnits({.reserve = 0, .unit = 64}, 1000).value(), 15u);
  // A share of a reserve is rounded up.
  EXPECT_EQ(QueuePairUnits({}, 256).value(), 250u);
}

TEST(QueuePairUnits, WhatTheKubeletCannotTakeIsRefusedWithWhatItCan) {
  const uint64_t largest = LargestUnitCount();
  const absl::StatusOr<uint32_t> units =
      QueuePairUnits({.reserve = 100}, 1'000'000);
  EXPECT_TRUE(absl::IsOutOfRange(units.status()));
  const std::string message(units.status().message());
  EXPECT_THAT(message, HasSubstr("999,900 units of 1 queue pairs"));
  EXPECT_THAT(message,
              HasSubstr(fmt::format("that fits is {};", largest + 100)));
  EXPECT_THAT(message, HasSubstr("as rdma/qp-8, set unit: 8"));
  EXPECT_EQ(QueuePairUnits({.reserve = 100}, largest + 100).value(), largest);
  EXPECT_FALSE(QueuePairUnits({.reserve = 100}, largest + 101).ok());
  EXPECT_TRUE(QueuePairUnits({.reserve = 100, .unit = 8}, 1'000'000).ok());
  EXPECT_FALSE(QueuePairUnits({.reserve = 100, .unit = 4}, 1'000'000).ok());
  // With a share in reserve, the largest total is larger by it.
  const std::string share(QueuePairUnits({}, 1'000'000).status().message());
  EXPECT_THAT(share, HasSubstr("that fits is 209203;"));
  EXPECT_TRUE(QueuePairUnits({}, 209'203).ok());
}

TEST(QueuePairUnits, LessThanAUnitIsRefused) {
  const absl::Status none =
      QueuePairUnits({.reserve = 50, .unit = 64}, 100).status();
  EXPECT_TRUE(absl::IsInvalidArgument(none));
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("100 queue pairs less 50 in reserve"));
  EXPECT_FALSE(QueuePairUnits({.reserve = 200}, 100).ok());
  EXPECT_FALSE(QueuePairUnits({.reserve_fraction = 1}, 100).ok());
  EXPECT_FALSE(QueuePairUnits({}, 0).ok());
}

}  // namespace
}  // namespace purser::plugin
