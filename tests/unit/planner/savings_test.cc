// SPDX-License-Identifier: Apache-2.0
#include "planner/savings.h"

#include <algorithm>
#include <cstdlib>

#include "gmock/gmock.h"
#include "planner/completion_room.h"
#include "queue_memory/registry.h"
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

// Less of a completion queue that is needed as it is would overrun.
TEST(SavingsTest, AGivenCompletionQueueKeepsItsRoom) {
  const auto savings_with = [](const std::string& count) {
    return SavingsOn("rxe",
                     Read("version: v1\n"
                          "completionQueues: [{name: q, cqe: 4096}]\n"
                          "groups: [{name: a, maxSendWr: 127, maxRecvWr: 127, "
                          "completionQueue: q, count: " +
                          count + "}]\n"));
  };
  EXPECT_THAT(savings_with("4"), Contains(Is("cqe", "4096", "4095")));
  EXPECT_THAT(savings_with("15"),
              testing::Not(Contains(Is("cqe", "4096", "4095"))));
}

Workload Changed(Workload workload, const std::string& name,
                 const std::string& argument, uint32_t value) {
  for (Group& group : workload.groups)
    for (const auto each : queue_memory::kArguments)
      if (group.name == name && argument == queue_memory::ArgumentName(each))
        group.request = With(group.request, each, value);
  for (Group& group : workload.groups)
    if (group.name == name && argument == "send_ops")
      group.request.send_ops = queue_memory::kSendOpsPlain;
  for (CompletionQueues& queues : workload.completion_queues)
    if (queues.name == name) queues.cqe = value;
  for (SharedReceiveQueues& queues : workload.shared_receive_queues)
    if (queues.name == name) queues.request.max_wr = value;
  return workload;
}

uint64_t Bytes(const Plan& plan) { return plan.pod.queues.total(); }

// Each by itself, whatever completion queues the groups have: a pod takes as
// much less as is told, and nothing can overrun that could not.
void ExpectReal(std::string_view profile, const Workload& workload) {
  const Plan plan = PlanOn(profile, workload);
  if (!plan.refusals.empty()) return;
  const bool overran = CanOverrun(workload, plan);
  const Neighbours neighbours = FindNeighbours(workload, plan, 10);
  for (const Saving& saving : neighbours.savings) {
    SCOPED_TRACE(fmt::format("{} {}: {} {} -> {}", profile, saving.group,
                             saving.argument, saving.from, saving.to));
    const Workload less = Changed(
        workload, saving.group, saving.argument,
        static_cast<uint32_t>(std::strtoul(saving.to.c_str(), nullptr, 10)));
    const Plan then = PlanOn(profile, less);
    ASSERT_TRUE(then.refusals.empty());
    // A completion queue that is sized by need shrinks with it.
    if (saving.argument == "srq max_wr") {
      EXPECT_LE(Bytes(then) + saving.bytes, Bytes(plan));
    } else {
      EXPECT_EQ(Bytes(then) + saving.bytes, Bytes(plan));
    }
    EXPECT_TRUE(overran || !CanOverrun(less, then));
  }
  for (const SameCost& same : neighbours.same_cost) {
    SCOPED_TRACE(fmt::format("{} {}: {} {} -> {}", profile, same.group,
                             same.argument, same.asked, same.most));
    const Workload more =
        Changed(workload, same.group, same.argument, same.most);
    const Plan then = PlanOn(profile, more);
    ASSERT_TRUE(then.refusals.empty());
    EXPECT_LE(Bytes(then), Bytes(plan));
    EXPECT_TRUE(overran || !CanOverrun(more, then));
    EXPECT_LE(CompletionRoom(more, then).level,
              CompletionRoom(workload, plan).level);
  }
}

TEST(SavingsTest, WhatIsPromisedIsGot) {
  uint32_t state = 1;
  const auto up_to = [&state](uint32_t most) {
    state = state * 1664525 + 1013904223;
    return 1 + (state >> 8) % most;
  };
  for (const Device& device : AllDevices())
    for (int i = 0; i < 40; ++i) {
      const auto& traits = queue_memory::TraitsOf(device.provider);
      const bool rc = traits.Has(queue_memory::QueuePairType::kRc);
      const std::string group = fmt::format(
          "count: {}, type: {}, maxSendWr: {}, maxSendSge: {}, maxInlineData: "
          "{}",
          up_to(9), rc ? "rc" : "ud", up_to(i % 2 == 0 ? 600 : 20000), up_to(2),
          up_to(64) % 40);
      const bool shares = traits.has_shared_receive_queues && i % 4 == 3;
      ExpectReal(
          device.name,
          Read(fmt::format(
              "version: v1\n"
              "completionQueues: [{{name: q{}}}]\n"
              "{}groups:\n"
              "- {{name: a, {}, completionQueue: q, {}}}\n"
              "- {{name: b, {}, maxRecvWr: {}}}\n",
              i % 3 == 0 ? fmt::format(", cqe: {}", up_to(30000)) : "",
              shares ? "sharedReceiveQueues: [{name: s, maxWr: 500}]\n" : "",
              group,
              shares ? std::string("sharedReceiveQueue: s")
                     : fmt::format("maxRecvWr: {}", up_to(900)),
              group, up_to(900))));
    }
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
