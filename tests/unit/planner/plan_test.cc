// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

#include "gmock/gmock.h"
#include "queue_memory/fit.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using queue_memory::Exactness;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kGateway[] =
    "- {name: a, count: 1000, maxSendWr: 256, maxSendSge: 4, maxRecvWr: 256}\n";

TEST(PlanTest, SumsPerQueuePairGroupPodAndNode) {
  Workload workload = Read(
      Groups(std::string(kGateway) +
             "- {name: b, count: 3, maxSendWr: 4096, maxSendSge: 8, maxRecvWr: "
             "4096}\n"));
  workload.pods_per_node = 5;
  const Plan plan = PlanOn("mlx5", workload);
  ASSERT_EQ(plan.groups.size(), 2u);
  const auto expected = queue_memory::QueuePairWithCompletionQueueMemory(
      queue_memory::Provider::kMlx5, {}, workload.groups[0].request,
      queue_memory::CompletionQueueSize::kHeadroom);
  EXPECT_EQ(plan.groups[0].each.total(), expected.memory.total());
  EXPECT_EQ(plan.groups[0].cqe, expected.cqe);
  EXPECT_EQ(plan.groups[0].each.send.total(), 65536u);
  EXPECT_EQ(plan.groups[0].each.completion.total(), 65536u);
  EXPECT_EQ(plan.groups[0].all.queues.total(),
            1000 * expected.memory.total().total());
  EXPECT_EQ(plan.groups[0].all.textbook, 1000u * (256 * 128 + 256 * 80));
  EXPECT_EQ(plan.groups[1].each.send.total(), 2097152u);
  EXPECT_EQ(plan.pod.queue_pairs, 1003u);
  EXPECT_EQ(plan.pod.queues.total(), plan.groups[0].all.queues.total() +
                                         plan.groups[1].all.queues.total());
  EXPECT_EQ(plan.node.queue_pairs, 5015u);
  EXPECT_EQ(plan.node.queues.total(), 5 * plan.pod.queues.total());
  EXPECT_EQ(plan.node.context, 5 * plan.pod.context);
  EXPECT_EQ(plan.units(), Mebibytes(plan.pod.queues.total()));
  EXPECT_EQ(plan.exactness, Exactness::kExact);
  EXPECT_THAT(plan.refusals, IsEmpty());
  EXPECT_THAT(plan.classes, IsEmpty());
}

TEST(PlanTest, WhoPaysIsTheProviders) {
  const Workload workload = Read(Groups(kGateway));
  const Plan mlx5 = PlanOn("mlx5", workload);
  EXPECT_EQ(mlx5.pod.queues.node, 0u);
  EXPECT_EQ(mlx5.pod.node(), mlx5.pod.context);
  EXPECT_GT(mlx5.pod.context, 0u);
  const Plan rxe = PlanOn("rxe", workload);
  EXPECT_GT(rxe.pod.queues.node, 1000u * 303104);
  EXPECT_LT(rxe.pod.queues.container, 1000u * 1024);
  EXPECT_EQ(rxe.pod.node(), rxe.pod.queues.node + rxe.pod.context);
}

TEST(PlanTest, ClassesHaveSumsOfTheirOwn) {
  const Plan plan =
      PlanOn("mlx5", Read(Groups("- {name: a, class: core, count: 2}\n"
                                 "- {name: b, count: 3}\n"
                                 "- {name: c, class: core, count: 5}\n")));
  ASSERT_EQ(plan.classes.size(), 2u);
  EXPECT_EQ(plan.classes[0].name, "core");
  EXPECT_EQ(plan.classes[0].pod.queue_pairs, 7u);
  EXPECT_EQ(plan.classes[1].name, "");
  EXPECT_EQ(plan.classes[1].pod.queue_pairs, 3u);
  EXPECT_EQ(plan.classes[0].pod.queues + plan.classes[1].pod.queues,
            plan.pod.queues);
}

TEST(PlanTest, SharedCompletionQueuesHoldWhatCanBePosted) {
  // rxe holds 255 of each where 128 are asked: 10 x 510 completions.
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q, count: 2}]\n"
      "groups: [{name: a, count: 10, completionQueue: q}]\n");
  const Plan plan = PlanOn("rxe", workload);
  ASSERT_EQ(plan.completion_queues.size(), 1u);
  EXPECT_EQ(plan.groups[0].cqe, 0u);
  EXPECT_EQ(plan.groups[0].each.completion.total(), 0u);
  EXPECT_EQ(plan.completion_queues[0].count, 2u);
  EXPECT_EQ(plan.completion_queues[0].entries, 5100u / 2);
  EXPECT_EQ(plan.pod.queues,
            plan.groups[0].all.queues + plan.completion_queues[0].all.queues);
  EXPECT_EQ(plan.pod.queue_pairs, 10u);
}

TEST(PlanTest, MoreCompletionQueuesWhereOneCannotHoldEnough) {
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q}]\n"
      "groups: [{name: a, count: 1000, completionQueue: q}]\n");
  const Plan plan = PlanOn("rxe", workload);  // takes 32,767 entries
  EXPECT_THAT(plan.refusals, IsEmpty());
  EXPECT_EQ(plan.completion_queues[0].count, 16u);  // 510,000 entries
  EXPECT_LE(plan.completion_queues[0].entries, 32767u);
  EXPECT_GE(plan.completion_queues[0].entries * 16ull, 510000u);
}

TEST(PlanTest, SharedReceiveQueuesAreCountedOnce) {
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q}]\n"
      "sharedReceiveQueues: [{name: s, count: 2, maxWr: 1000}]\n"
      "groups:\n"
      "- {name: a, count: 4, completionQueue: q, sharedReceiveQueue: s}\n"
      "- {name: b, count: 4, completionQueue: q, sharedReceiveQueue: s}\n");
  const Plan plan = PlanOn("rxe", workload);
  EXPECT_EQ(plan.groups[0].each.receive.total(), 0u);
  const QueuesPlan& shared = plan.shared_receive_queues[0];
  EXPECT_EQ(shared.each.shared_receive_ring.slots, 1023u);
  EXPECT_EQ(shared.all.queues.total(), 2 * shared.each.total().total());
  EXPECT_EQ(shared.all.textbook, 2u * 1000 * 80);
  // 8 x 255 sends and 2 x 1,023 receives: more than a fifth above what is
  // asked for, 8 x 128 and 2 x 1,000.
  EXPECT_EQ(plan.completion_queues[0].entries, 4086u);
  EXPECT_EQ(plan.exactness, Exactness::kExact);
  EXPECT_EQ(PlanOn("mlx5", workload).exactness, Exactness::kEstimated);
  EXPECT_EQ(plan.pod.queues, plan.groups[0].all.queues +
                                 plan.groups[1].all.queues + shared.all.queues +
                                 plan.completion_queues[0].all.queues);
}

TEST(PlanTest, CompletionQueuesHaveAFifthMoreThanWasAskedFor) {
  EXPECT_EQ(EntriesFor(1000, 900), 1200u);
  EXPECT_EQ(EntriesFor(1000, 1300), 1300u);
  EXPECT_EQ(EntriesFor(0, 0), 1u);
  EXPECT_EQ(EntriesFor(INT64_MAX, 0), INT64_MAX + uint64_t{INT64_MAX} / 5);
  // Of one queue pair as of many.
  const Workload own =
      Read(Groups("- {name: a, maxSendWr: 100, maxRecvWr: "
                  "127}\n"));
  EXPECT_EQ(PlanOn("rxe", own).groups[0].cqe, 227u + 45);  // 127 + 127 held
  const Workload shared = Read(
      "version: v1\n"
      "completionQueues: [{name: q}]\n"
      "groups: [{name: a, maxSendWr: 100, maxRecvWr: 127, completionQueue: "
      "q}]\n");
  EXPECT_EQ(PlanOn("rxe", shared).completion_queues[0].entries, 227u + 45);
}

TEST(PlanTest, CompletionQueuesThatAreTooSmallAreToldOf) {
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q, cqe: 100}]\n"
      "groups: [{name: a, completionQueue: q}]\n");
  EXPECT_THAT(PlanOn("mlx5", workload).warnings,
              testing::Contains(HasSubstr(
                  "completion queue q: 1 x 100 entries for 256 requests that "
                  "can be outstanding: it can overrun; leave out cqe, or give "
                  "307")));
}

TEST(PlanTest, RefusalsHaveTheirPlaceAndTheRestIsPlanned) {
  const Workload workload = Read(
      "version: v1\n"
      "completionQueues: [{name: q, cqe: 2147483647}]\n"
      "groups:\n"
      "- {name: a, maxSendWr: 40000}\n"
      "- {name: b, type: srd}\n"
      "- {name: c, maxInlineData: 2000}\n"
      "- {name: d, maxSendWr: 8192, maxInlineData: 64}\n"
      "- {name: e, maxRecvSge: 100}\n"
      "- {name: f, completionQueue: q}\n"
      "- {name: g}\n");
  const Plan plan = PlanOn("mlx5", workload);
  std::vector<std::string> refusals;
  for (const Refusal& refusal : plan.refusals)
    refusals.push_back(refusal.where + ": " + refusal.text);
  EXPECT_THAT(
      refusals,
      ElementsAre(
          "w.yaml:4:24: groups[0]: max_send_wr is 40000, mlx5 takes 32768; the "
          "largest max_send_wr that it takes is 8192, all else as asked",
          HasSubstr("w.yaml:4:24: groups[0]: the send ring would be "),
          "w.yaml:5:3: groups[1]: mlx5 has no queue pairs of that type; it has "
          "rc, uc, ud, xrc_send, raw_packet, dci",
          HasSubstr("w.yaml:6:28: groups[2]: an entry would have 2240 bytes, "
                    "mlx5 takes 1024: fewer SGEs, or less inline data; the "
                    "largest max_inline_data that it takes is 828"),
          HasSubstr(
              "w.yaml:7:24: groups[3]: the send ring would be 4 MiB (depth "
              "x entry, rounded up), mlx5 takes 2 MiB; the largest "
              "max_send_wr that it takes is 6553"),
          HasSubstr("w.yaml:8:25: groups[4]: "),
          HasSubstr("w.yaml:2:20: q: max_cqe is 2147483647, mlx5 takes")));
  EXPECT_EQ(plan.pod.queue_pairs, 2u);
  EXPECT_TRUE(plan.groups[0].each.refusal);
  EXPECT_EQ(plan.groups[0].all.queues.total(), 0u);
  EXPECT_EQ(plan.pod.queues,
            plan.groups[5].all.queues + plan.groups[6].all.queues);
}

TEST(PlanTest, AGroupIsToldOfAllThatRefusesIt) {
  const Workload workload = Read(
      Groups("- {name: a, maxSendWr: 2000000, maxSendSge: 33, maxInlineData: "
             "600, maxRecvWr: 2000000, maxRecvSge: 40}\n"));
  std::vector<std::string> texts;
  for (const Refusal& refusal : PlanOn("rxe", workload).refusals)
    texts.push_back(refusal.text);
  EXPECT_THAT(texts, testing::UnorderedElementsAre(
                         HasSubstr("max_send_wr is 2000000, rxe takes 1048576"),
                         HasSubstr("max_send_sge is 33, rxe takes 32"),
                         HasSubstr("max_inline_data is 600, rxe takes 512"),
                         HasSubstr("max_recv_wr is 2000000, rxe takes 1048576"),
                         HasSubstr("max_recv_sge is 40, rxe takes 32")));
}

TEST(PlanTest, SharedReceiveQueuesThatADeviceHasNot) {
  const Workload workload = Read(
      "version: v1\n"
      "sharedReceiveQueues: [{name: s, maxWr: 8}]\n"
      "groups: [{name: a, type: ud, sharedReceiveQueue: s}]\n");
  const Plan plan = PlanOn("efa", workload);
  ASSERT_GE(plan.refusals.size(), 1u);
  EXPECT_EQ(plan.refusals[0].where, "w.yaml:2:23: s");
  EXPECT_EQ(plan.refusals[0].text, "efa has no shared receive queues");
}

TEST(PlanTest, FlagsHaveNoPlace) {
  Workload workload;
  workload.groups.push_back({.name = "all"});
  workload.groups[0].request.max_send_sge = 100;
  const Plan plan = PlanOn("mlx5", workload);
  ASSERT_EQ(plan.refusals.size(), 1u);
  EXPECT_EQ(plan.refusals[0].where, "");
}

TEST(PlanTest, MoreQueuePairsThanTheDeviceHas) {
  Device device = On("mlx5");
  ASSERT_TRUE(SetLimit("maxQp", 10, &device).ok());
  Workload workload = Read(Groups("- {name: a, count: 6}\n"));
  EXPECT_THAT(MakePlan(workload, device)->warnings, IsEmpty());
  workload.pods_per_node = 2;
  EXPECT_THAT(MakePlan(workload, device)->warnings,
              ElementsAre("12 queue pairs of 2 pods on one node are more than "
                          "the 10 that mlx5 has (max_qp): fewer pods for each "
                          "device"));
  workload.groups[0].count = 11;
  workload.pods_per_node = 1;
  const auto plan = MakePlan(workload, device);
  ASSERT_EQ(plan->refusals.size(), 1u);
  EXPECT_EQ(plan->refusals[0].text,
            "11 queue pairs are more than the 10 that mlx5 has");
}

// What is usual of the provider refuses nothing.
TEST(PlanTest, MoreQueuePairsThanSuchDevicesHave) {
  const Plan plan = PlanOn("irdma", Read(Groups("- {name: a, count: 5000}\n")));
  EXPECT_THAT(plan.refusals, IsEmpty());
  EXPECT_THAT(plan.warnings,
              testing::Contains(HasSubstr(
                  "5,000 queue pairs of 1 pod on one node are more than the "
                  "4,092 that irdma usually has (max_qp): fewer of them, or "
                  "give the limit maxQp where yours has more")));
}

TEST(PlanTest, MebibytesAreRoundedUp) {
  EXPECT_EQ(Mebibytes(0), 0u);
  EXPECT_EQ(Mebibytes(1), 1u);
  EXPECT_EQ(Mebibytes(1 << 20), 1u);
  EXPECT_EQ(Mebibytes((1 << 20) + 1), 2u);
  EXPECT_EQ(Mebibytes(UINT64_MAX), uint64_t{1} << 44);
}

}  // namespace
}  // namespace purser::planner
