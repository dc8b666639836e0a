// SPDX-License-Identifier: Apache-2.0
#include "planner/savings.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "spdlog/fmt/fmt.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::IsEmpty;

std::vector<Saving> SavingsOn(std::string_view profile,
                              const Workload& workload) {
  return FindNeighbours(workload, PlanOn(profile, workload), 10).savings;
}

auto Is(const std::string& argument, const std::string& from,
        const std::string& to) {
  return AllOf(Field(&Saving::argument, argument), Field(&Saving::from, from),
               Field(&Saving::to, to));
}

TEST(SavingsTest, OneEntryLessHalvesARing) {
  const Workload workload =
      Read(Groups("- {name: a, count: 10, maxSendWr: 256, maxSendSge: 4, "
                  "maxRecvWr: 1}\n"));
  const auto savings = SavingsOn("rxe", workload);
  ASSERT_THAT(savings, Contains(Is("max_send_wr", "256", "255")));
  // What is promised is what is got.
  Workload less = workload;
  less.groups[0].request.max_send_wr = 255;
  const auto saving = std::find_if(
      savings.begin(), savings.end(),
      [](const Saving& one) { return one.argument == "max_send_wr"; });
  EXPECT_EQ(saving->bytes, PlanOn("rxe", workload).pod.queues.total() -
                               PlanOn("rxe", less).pod.queues.total());
}

TEST(SavingsTest, InlineAndOperationsOfMlx5) {
  const auto savings = SavingsOn(
      "mlx5", Read(Groups("- {name: a, maxSendWr: 256, maxSendSge: 4, "
                          "maxInlineData: 64, maxRecvWr: 256}\n")));
  EXPECT_THAT(savings, Contains(Is("max_inline_data", "64", "60")));
  EXPECT_THAT(savings, Contains(Is("send_ops", "what ibv_create_qp implies",
                                   "send, write, read alone")));
  EXPECT_TRUE(std::is_sorted(
      savings.begin(), savings.end(),
      [](const Saving& a, const Saving& b) { return a.bytes > b.bytes; }));
}

TEST(SavingsTest, HalfTheDepthForHalfTheMemoryIsNoFind) {
  EXPECT_THAT(SavingsOn("mlx5", Read(Groups("- {name: a, maxSendWr: 256, "
                                            "maxRecvWr: 256, sendOps: "
                                            "[send]}\n"))),
              IsEmpty());
}

TEST(SavingsTest, SharedQueues) {
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q, cqe: 4096}]\n"
      "sharedReceiveQueues: [{name: s, maxWr: 1024}]\n"
      "groups: [{name: a, completionQueue: q, sharedReceiveQueue: s}]\n");
  const auto savings = SavingsOn("rxe", workload);
  EXPECT_THAT(savings, Contains(Is("cqe", "4096", "4095")));
  EXPECT_THAT(savings, Contains(Is("srq max_wr", "1024", "1023")));
}

TEST(SavingsTest, WhatCouldBeHadForTheSame) {
  const auto same_cost = [](std::string_view profile,
                            const std::string& group) {
    const Workload workload = Read(Groups("- " + group + "\n"));
    std::string text;
    for (const SameCost& same :
         FindNeighbours(workload, PlanOn(profile, workload), 10).same_cost)
      text += fmt::format("{} {}-{} ", same.argument, same.asked, same.most);
    return text;
  };
  EXPECT_EQ(same_cost("rxe",
                      "{name: a, maxSendWr: 256, maxSendSge: 4, "
                      "maxRecvWr: 256}"),
            "max_send_wr 256-511 max_send_sge 4-19 max_recv_wr 256-511 ");
  EXPECT_EQ(same_cost("mlx5",
                      "{name: a, maxSendWr: 4096, maxSendSge: 8, "
                      "maxRecvWr: 0}"),
            "max_send_wr 4096-6553 max_send_sge 8-20 ");
}

TEST(SavingsTest, ManyGroupsAreCut) {
  std::string text = Groups("");
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("- {{name: g{}, maxSendWr: 256}}\n", i);
  EXPECT_EQ(SavingsOn("rxe", Read(text)).size(), 10u);
}

TEST(SavingsTest, RefusedGroupsHaveNone) {
  EXPECT_THAT(
      SavingsOn("mlx5", Read(Groups("- {name: a, maxSendSge: 1000}\n"))),
      IsEmpty());
}

}  // namespace
}  // namespace purser::planner
