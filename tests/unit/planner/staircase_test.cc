// SPDX-License-Identifier: Apache-2.0
#include "planner/staircase.h"

#include <bit>

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
  std::vector<uint32_t> lasts;
  for (const Stair& stair : stairs) {
    lasts.push_back(stair.last);
    if (std::has_single_bit(stair.last + 1)) {
      EXPECT_EQ(stair.cliff, stair.last != 32767) << stair.last;
    }
  }
  // Between them completion queues double, which have a fifth more than asked.
  EXPECT_THAT(lasts, testing::ElementsAre(26, 31, 53, 63, 106, 127, 213, 255,
                                          426, 511, 853, 1023, 1706, 2047, 3413,
                                          4095, 6826, 8191, 16383, 32767));
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
                                device.provider, device.limits, request,
                                queue_memory::CompletionQueueSize::kHeadroom)
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
