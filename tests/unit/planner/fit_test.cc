// SPDX-License-Identifier: Apache-2.0
#include "planner/fit.h"

#include "gmock/gmock.h"
#include "planner/completion_room.h"
#include "planner/plan.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMi = 1 << 20;

Workload Fitted(const Workload& workload, std::string_view profile,
                uint64_t budget) {
  auto fitted = Fit(workload, On(profile), budget);
  EXPECT_TRUE(fitted.ok()) << fitted.status();
  return fitted.ok() ? *std::move(fitted) : Workload{};
}

TEST(FitTest, DeeperWhereThereIsRoom) {
  const Workload workload =
      Read(Groups("- {name: a, count: 1000, maxSendWr: 128, maxSendSge: 4, "
                  "maxRecvWr: 128}\n"));
  const Workload fitted = Fitted(workload, "rxe", 512 * kMi);
  // A fifth above 853 makes a completion queue of 1,023.
  EXPECT_EQ(fitted.groups[0].request.max_send_wr, 427u);
  EXPECT_EQ(fitted.groups[0].request.max_recv_wr, 426u);
  EXPECT_LE(PlanOn("rxe", fitted).pod.queues.total(), 512 * kMi);
  Workload deeper = fitted;
  deeper.groups[0].request.max_send_wr = 428;
  EXPECT_GT(PlanOn("rxe", deeper).pod.queues.total(), 512 * kMi);
}

TEST(FitTest, ShallowerWhereThereIsLittleInProportion) {
  const Workload workload =
      Read(Groups("- {name: deep, count: 10, maxSendWr: 4096, maxRecvWr: "
                  "1024}\n"
                  "- {name: shallow, count: 100, maxSendWr: 512, maxRecvWr: "
                  "512}\n"));
  const Workload fitted = Fitted(workload, "mlx5", 20 * kMi);
  const auto& deep = fitted.groups[0].request;
  const auto& shallow = fitted.groups[1].request;
  EXPECT_LT(deep.max_send_wr, 4096u);
  EXPECT_GT(deep.max_send_wr, shallow.max_send_wr);
  EXPECT_GT(deep.max_send_wr, deep.max_recv_wr);
  EXPECT_LE(PlanOn("mlx5", fitted).pod.queues.total(), 20 * kMi);
}

// To 127, the slots of 106, a fifth more than which is another completion
// queue.
TEST(FitTest, SharedCompletionQueuesDoNotGrowByWhatIsRaised) {
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q}]\n"
      "groups: [{name: a, maxSendWr: 100, maxRecvWr: 0, completionQueue: "
      "q}]\n");
  const uint64_t budget = PlanOn("rxe", workload).pod.queues.total();
  const Workload fitted = Fitted(workload, "rxe", budget);
  EXPECT_EQ(fitted.groups[0].request.max_send_wr, 106u);
  EXPECT_EQ(PlanOn("rxe", fitted).pod.queues.total(), budget);
}

// Over providers and budgets: it fits, and no depth is more than the device
// takes.
TEST(FitTest, AlwaysFits) {
  const std::string text =
      "version: v1\n"
      "completionQueues: [{name: q}]\n"
      "groups:\n"
      "- {name: a, type: TYPE, count: 7, maxSendWr: 100, maxRecvWr: 300}\n"
      "- {name: b, type: TYPE, count: 2, maxSendWr: 77, completionQueue: q}\n"
      "- {name: c, type: TYPE, maxSendWr: 5, maxRecvWr: 0}\n";
  for (const Device& device : AllDevices()) {
    const bool rc = queue_memory::TraitsOf(device.provider)
                        .Has(queue_memory::QueuePairType::kRc);
    std::string typed = text;
    for (size_t at = 0; (at = typed.find("TYPE")) != std::string::npos;)
      typed.replace(at, 4, rc ? "rc" : "ud");
    Workload workload = Read(typed);
    for (uint64_t budget = kMi; budget <= 4096 * kMi; budget *= 3) {
      const auto fitted = Fit(workload, device, budget);
      if (!fitted.ok()) continue;
      const auto plan = MakePlan(*fitted, device);
      ASSERT_TRUE(plan.ok());
      EXPECT_TRUE(plan->refusals.empty())
          << device.name << ": " << plan->refusals[0].text;
      EXPECT_LE(plan->pod.queues.total(), budget) << device.name;
      // 0 stays 0.
      EXPECT_EQ(fitted->groups[2].request.max_recv_wr, 0u);
    }
  }
}

TEST(FitTest, ADevicesLimitIsTheEnd) {
  const Workload workload = Read(Groups("- {name: a}\n"));
  const Workload fitted = Fitted(workload, "mlx5", uint64_t{1} << 40);
  EXPECT_EQ(fitted.groups[0].request.max_send_wr, 8192u);
  EXPECT_EQ(fitted.groups[0].request.max_recv_wr, 32768u);
}

// Soft-RoCE's completion queues have 32,767 entries, which sends and receives
// share; a group beside them that is less deep goes on.
TEST(FitTest, CompletionQueuesOfOneQueuePairHoldWhatFits) {
  const Workload workload =
      Read(Groups("- {name: a}\n"
                  "- {name: b, maxSendWr: 16, maxRecvWr: 16}\n"));
  const Workload fitted = Fitted(workload, "rxe", 512 * kMi);
  for (const Group& group : fitted.groups)  // and a fifth more
    EXPECT_EQ(group.request.max_send_wr + group.request.max_recv_wr, 27306u)
        << group.name;
  const Plan plan = PlanOn("rxe", fitted);
  EXPECT_EQ(CompletionRoom(fitted, plan).level, Level::kOk);
  for (const std::string& warning : plan.warnings)
    EXPECT_THAT(warning, testing::Not(HasSubstr("overrun")));
}

// Groups of one of a given size stay behind, and their shared receive queue
// with them; the others go on.
TEST(FitTest, AGivenCompletionQueueHoldsWhatFits) {
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q, cqe: 2000}, {name: any}]\n"
      "sharedReceiveQueues: [{name: s, maxWr: 200}]\n"
      "groups:\n"
      "- {name: a, count: 3, maxSendWr: 100, sharedReceiveQueue: s, "
      "completionQueue: q}\n"
      "- {name: b, count: 2, completionQueue: q}\n"
      "- {name: c, completionQueue: any}\n"
      "- {name: d}\n");
  for (const char* profile : {"mlx5", "rxe", "irdma", "bnxt_re"}) {
    const Workload fitted = Fitted(workload, profile, 64 * kMi);
    const Plan plan = PlanOn(profile, fitted);
    EXPECT_EQ(CompletionRoom(fitted, plan).level, Level::kOk) << profile;
    EXPECT_GE(plan.completion_queues[0].room(),
              plan.completion_queues[0].needed());
    EXPECT_GT(fitted.groups[2].request.max_send_wr,
              4 * fitted.groups[1].request.max_send_wr)
        << profile;
    EXPECT_GT(fitted.groups[3].request.max_send_wr,
              4 * fitted.groups[1].request.max_send_wr)
        << profile;
    // No deeper than is needed: the next factor would not have room.
    EXPECT_GT(2 * plan.completion_queues[0].needed(),
              plan.completion_queues[0].room());
  }
}

TEST(FitTest, ACompletionQueueThatHoldsNoDepth) {
  const auto status =
      Fit(Read("version: v1\n"
               "completionQueues: [{name: q, cqe: 100}]\n"
               "groups: [{name: a, count: 1000, completionQueue: q}]\n"),
          On("mlx5"), 64 * kMi)
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("not even the least depths have room"),
                             HasSubstr("leave out cqe, or give ")));
}

TEST(FitTest, SharedReceiveQueuesFollow) {
  const Workload workload = Read(
      "version: v1\n"
      "sharedReceiveQueues: [{name: s, maxWr: 100}]\n"
      "groups: [{name: a, maxSendWr: 100, sharedReceiveQueue: s}]\n");
  const Workload fitted = Fitted(workload, "rxe", 4 * kMi);
  EXPECT_GT(fitted.shared_receive_queues[0].request.max_wr, 1000u);
  EXPECT_LE(PlanOn("rxe", fitted).pod.queues.total(), 4 * kMi);
}

TEST(FitTest, TooLittleForAnyDepth) {
  const auto status =
      Fit(Read(Groups("- {name: a, count: 1000}\n")), On("mlx5"), kMi).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("1,000 queue pairs take"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("more than the 1 MiB to fit into"));
}

TEST(FitTest, WhatTheDeviceRefusesAtAnyDepth) {
  const auto status =
      Fit(Read(Groups("- {name: a, maxSendSge: 1000}\n")), On("mlx5"), kMi)
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("w.yaml:3:25: groups"));
}

}  // namespace
}  // namespace purser::planner
