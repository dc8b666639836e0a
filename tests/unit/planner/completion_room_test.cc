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
  EXPECT_THAT(Capacity("4000").advice,
              HasSubstr("leave out cqe, or give 4,915 entries: for all"));
  EXPECT_EQ(Capacity("8000").level, Level::kOk);
  const Workload close = Read(
      "version: v1\ncompletionQueues: [{name: c, cqe: 4000}]\n"
      "groups: [{name: a, count: 15, completionQueue: c}]\n");
  EXPECT_EQ(Room(On("mlx5"), close).level, Level::kWarning);
}

TEST(CompletionRoom, AdviceIsOfWhatTheDeviceHas) {
  const auto advice = [](const std::string& queues) {
    return Room(On("rxe"),
                Read("version: v1\ncompletionQueues: [{name: c, " + queues +
                     "}]\ngroups: [{name: a, count: 200, completionQueue: "
                     "c}]\n"))
        .advice;
  };
  // 200 x 255 are held of each side, and no queue has more than 32,767.
  EXPECT_THAT(advice("cqe: 1000"),
              HasSubstr("give 4 queues of 25,500 entries each"));
  EXPECT_THAT(advice("cqe: 1000, count: 5"),
              HasSubstr("give each 20,400 entries"));
}

TEST(CompletionRoom, WhetherItCanOverrun) {
  const auto overruns = [](const std::string& text) {
    const Workload workload = Read(text);
    return CanOverrun(workload, PlanOn("rxe", workload));
  };
  EXPECT_FALSE(overruns(Groups("- {name: a}\n")));
  EXPECT_TRUE(overruns(Groups("- {name: a, maxSendWr: 20000}\n")));
  const std::string given =
      "version: v1\ncompletionQueues: [{name: c, cqe: 400}]\n"
      "groups: [{name: a, completionQueue: c, maxRecvWr: ";
  EXPECT_FALSE(overruns(given + "127}]\n"));
  EXPECT_TRUE(overruns(given + "256}]\n"));
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
