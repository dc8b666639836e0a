// SPDX-License-Identifier: Apache-2.0
#include "planner/completion_room.h"

#include "gmock/gmock.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::HasSubstr;

Finding Room(const Device& device, const Workload& workload) {
  const auto plan = MakePlan(workload, device);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? CompletionRoom(workload, *plan) : Finding{};
}

Finding Capacity(const std::string& cqe) {
  return Room(On("mlx5"),
              Read("version: v1\ncompletionQueues: [{name: c, cqe: " + cqe +
                   "}]\n"
                   "groups: [{name: a, count: 16, completionQueue: c}]\n"));
}

// 16 x (128 + 128) = 4096 requests, and mlx5 rounds up to 2^n - 1.
TEST(CompletionRoom, RoomForCompletionsWithAFifthMore) {
  EXPECT_EQ(Capacity("4000").level, Level::kFailure);
  EXPECT_THAT(Capacity("4000").found, HasSubstr("it can overrun"));
  EXPECT_THAT(Capacity("4000").advice, HasSubstr("give 4,915 entries"));
  EXPECT_EQ(Capacity("8000").level, Level::kOk);
  const Workload close = Read(
      "version: v1\ncompletionQueues: [{name: c, cqe: 4000}]\n"
      "groups: [{name: a, count: 15, completionQueue: c}]\n");
  EXPECT_EQ(Room(On("mlx5"), close).level, Level::kWarning);
}

TEST(CompletionRoom, CompletionQueuesOfTheirOwn) {
  // soft-RoCE: 2^n - 1 requests of 16,384 each side, and no such queue.
  EXPECT_EQ(
      Room(On("rxe"),
           Read(Groups("- {name: a, maxSendWr: 20000, maxRecvWr: 20000}\n")))
          .level,
      Level::kFailure);
  // Held, but not asked for: only capacities written back let it overrun.
  EXPECT_EQ(
      Room(On("rxe"), Read(Groups("- {name: a, maxSendWr: 16384}\n"))).level,
      Level::kWarning);
  EXPECT_EQ(Room(On("rxe"), Read(Groups("- {name: a}\n"))).level, Level::kOk);
  const Workload shared = Read(
      "version: v1\nsharedReceiveQueues: [{name: s, maxWr: 100}]\n"
      "groups: [{name: a, sharedReceiveQueue: s}]\n");
  EXPECT_EQ(Room(On("rxe"), shared).level, Level::kWarning);
}

}  // namespace
}  // namespace purser::planner
