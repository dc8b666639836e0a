// SPDX-License-Identifier: Apache-2.0
#include "planner/warnings.h"

#include "gmock/gmock.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kSmall = Groups("- {name: a}\n");
const std::string kLarge = Groups("- {name: a, count: 1000}\n");

TEST(WarningsTest, NothingToSayOfASmallWorkload) {
  EXPECT_THAT(PlanOn("mlx5", Read(kSmall)).warnings, IsEmpty());
}

TEST(WarningsTest, PinnedRings) {
  EXPECT_THAT(PlanOn("mlx5", Read(kLarge)).warnings,
              Contains(HasSubstr("count against RLIMIT_MEMLOCK")));
  EXPECT_THAT(PlanOn("rxe", Read(kLarge)).warnings,
              Each(Not(HasSubstr("RLIMIT_MEMLOCK"))));
}

TEST(WarningsTest, WhatNobodyIsChargedFor) {
  EXPECT_THAT(PlanOn("rxe", Read(kSmall)).warnings,
              Contains(HasSubstr("of each pod lie in the kernel")));
}

TEST(WarningsTest, WhatIsNotExact) {
  EXPECT_THAT(PlanOn("ionic", Read(kSmall)).warnings,
              Contains(HasSubstr("some figures of ionic are estimates")));
  const auto plan = MakePlan(Read(kSmall), Device{.name = "new_0"});
  EXPECT_THAT(plan->warnings,
              Contains(HasSubstr("no rule is known for the provider of "
                                 "new_0")));
}

TEST(WarningsTest, MoreUnitsThanTheKubeletTakes) {
  Workload workload = Read(
      Groups("- {name: a, count: 60000, maxSendWr: 8192, maxRecvWr: 8192}\n"));
  EXPECT_THAT(PlanOn("mlx5", workload).warnings,
              Contains(AllOf(HasSubstr("units of rdma/wqe-mib on one node"),
                             HasSubstr("205,019"))));
}

TEST(WarningsTest, NoCompletionQueueIsAsLargeAsTheRings) {
  const std::string deep = "maxSendWr: 20000, maxRecvWr: 20000}\n";
  EXPECT_THAT(
      PlanOn("rxe", Read(Groups("- {name: a, " + deep + "- {name: b, " + deep)))
          .warnings,
      Contains(AllOf(HasSubstr("group a (and 1 more): the completion queue of "
                               "each queue pair has room for 32,767"),
                     HasSubstr("65,534 requests can be outstanding"))));
  EXPECT_THAT(
      PlanOn("rxe", Read(Groups("- {name: a, maxSendWr: 16383, maxRecvWr: "
                                "16383}\n")))
          .warnings,
      Each(Not(HasSubstr("overrun"))));
}

TEST(WarningsTest, ReceivesOfASharedQueueOverrunCompletionQueuesOfOne) {
  const Workload workload = Read(
      "version: v1\n"
      "sharedReceiveQueues: [{name: s, maxWr: 100}]\n"
      "groups: [{name: a, sharedReceiveQueue: s}]\n");
  EXPECT_THAT(PlanOn("mlx5", workload).warnings,
              Contains(HasSubstr("group a: completion queues of one queue pair "
                                 "each are sized for its sends")));
}

}  // namespace
}  // namespace purser::planner
