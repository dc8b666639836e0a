// SPDX-License-Identifier: Apache-2.0
#include "planner/staircase.h"

#include "gmock/gmock.h"
#include "queue_memory/fit.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

queue_memory::QueuePairRequest Shape(uint32_t sges) {
  return {.max_send_wr = 1,
          .max_send_sge = sges,
          .max_recv_wr = 1,
          .max_recv_sge = 1};
}

TEST(StaircaseTest, StairsOfRxeEndBelowPowersOfTwo) {
  const auto stairs = StaircaseOf(On("rxe"), Shape(4), 16, 32767);
  ASSERT_EQ(stairs.size(), 11u);
  uint32_t last = 31;
  for (const Stair& stair : stairs) {
    EXPECT_EQ(stair.last, last);
    EXPECT_EQ(stair.cliff, last != 32767);
    last = last * 2 + 1;
  }
}

TEST(StaircaseTest, EndsWhereTheDeviceRefuses) {
  const auto stairs = StaircaseOf(On("mlx5"), Shape(1), 16, 32767);
  ASSERT_FALSE(stairs.empty());
  EXPECT_EQ(stairs.back().last, 8192u);
  EXPECT_TRUE(StaircaseOf(On("mlx5"), Shape(1000), 16, 32767).empty());
}

TEST(StaircaseTest, EveryStairCostsWhatTheModelSays) {
  for (const Device& device : AllDevices()) {
    const auto stairs = StaircaseOf(device, Shape(2), 16, 4096);
    EXPECT_LT(stairs.size(), 800u) << device.name;
    for (const Stair& stair : stairs)
      for (const uint32_t depth : {stair.first, stair.last}) {
        auto request = Shape(2);
        request.max_send_wr = request.max_recv_wr = depth;
        const auto memory = queue_memory::QueuePairWithCompletionQueueMemory(
                                device.provider, device.limits, request)
                                .memory;
        EXPECT_LE(memory.total().total(), stair.bytes) << device.name;
        EXPECT_GE(memory.total().total() + 64, stair.bytes) << device.name;
      }
  }
}

TEST(StaircaseTest, ASideThatIsNotThereStaysSo) {
  auto sends = Shape(1);
  sends.max_recv_wr = 0;
  EXPECT_LT(StaircaseOf(On("rxe"), sends, 1024, 1024)[0].bytes,
            StaircaseOf(On("rxe"), Shape(1), 1024, 1024)[0].bytes);
}

}  // namespace
}  // namespace purser::planner
