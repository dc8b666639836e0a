// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace purser::cli {
namespace {

using testing::HasSubstr;

// 256/4, 256/1 on soft-RoCE.
v1::QueueMemory Memory() {
  v1::QueueMemory memory;
  memory.mutable_send()->set_node_bytes(274'432);
  memory.mutable_receive()->set_node_bytes(24'576);
  memory.mutable_completion()->set_node_bytes(69'632);
  memory.mutable_arrays()->set_container_bytes(8'192);
  memory.mutable_overhead()->set_node_bytes(0);
  memory.set_total_bytes(376'832);
  memory.set_exactness(v1::EXACTNESS_EXACT);
  memory.set_textbook_bytes(53'248);
  return memory;
}

v1::Capabilities Cap() {
  v1::Capabilities cap;
  cap.set_max_send_wr(256);
  cap.set_max_send_sge(4);
  cap.set_max_recv_wr(256);
  cap.set_max_recv_sge(1);
  return cap;
}

v1::QueuePair QueuePair(uint64_t id) {
  v1::QueuePair queue_pair;
  queue_pair.set_id(id);
  queue_pair.set_qp_num(17 + static_cast<uint32_t>(id));
  queue_pair.set_device("rxe0");
  queue_pair.set_type(v1::QUEUE_PAIR_TYPE_RC);
  queue_pair.set_state(v1::QUEUE_PAIR_STATE_RESET);
  *queue_pair.mutable_cap() = Cap();
  queue_pair.set_send_slots(511);
  queue_pair.set_recv_slots(511);
  *queue_pair.mutable_memory() = Memory();
  queue_pair.mutable_local()->set_gid(
      std::string("\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01", 16));
  queue_pair.set_client_name("app");
  return queue_pair;
}

TEST(RenderTest, ACreatedQueuePair) {
  EXPECT_EQ(RenderCreated(Cap(), QueuePair(1)),
            R"(queue pair 1 on rxe0: RC, qp_num 18, gid ::ffff:10.0.0.1, RESET
  capacity         asked  granted  posts it takes
  max_send_wr        256      256             511
  max_send_sge         4        4
  max_inline_data      0        0
  max_recv_wr        256      256             511
  max_recv_sge         1        1
  memory            container     node    bytes
  send ring                 0  274,432  274,432  268 KiB
  receive ring              0   24,576   24,576   24 KiB
  completion queue          0   69,632   69,632   68 KiB
  arrays                8,192        0    8,192    8 KiB
  overhead                  0        0        0      0 B
  total                 8,192  368,640  376,832  368 KiB
  textbook sum                           53,248   52 KiB
  it takes 7.1 x the textbook sum; exact, by the provider's own rule
)");
}

TEST(RenderTest, ManyCreatedQueuePairs) {
  EXPECT_EQ(RenderCreatedMany(
                20, std::vector<v1::QueuePair>{QueuePair(3), QueuePair(4)}),
            R"(created 2 of 20 queue pairs: RC on rxe0, ids 3 to 4
  each          376,832  368 KiB
  together      753,664  736 KiB
  textbook sum  106,496  104 KiB
)");
  EXPECT_EQ(RenderCreatedMany(20, {}), "created 0 of 20 queue pairs\n");
}

v1::Refusal Refusal() {
  v1::Refusal refusal;
  refusal.set_reason(v1::REASON_BUDGET);
  *refusal.mutable_needed() = Memory();
  refusal.set_needed_bytes(376'832);
  refusal.set_used_bytes(66'800'000);
  refusal.set_budget_bytes(64 << 20);
  refusal.set_bound(v1::BUDGET_SOURCE_PLUGIN);
  refusal.set_largest_max_send_wr(127);
  refusal.set_remedy("request more rdma/wqe-mib, or ask for fewer");
  return refusal;
}

TEST(RenderTest, ARefusalByTheBudgetIsACalculation) {
  EXPECT_EQ(RenderRefusal(Refusal(), "not shown"),
            R"(refused: more queue memory than the budget has left
  send ring            274,432    268 KiB
  receive ring          24,576     24 KiB
  completion queue      69,632     68 KiB
  arrays                 8,192      8 KiB
  overhead                   0        0 B
  needed               376,832    368 KiB
  + used            66,800,000   63.7 MiB
  = would be        67,176,832   64.1 MiB
  budget            67,108,864     64 MiB  bound: plugin
  left                 308,864  301.6 KiB
  short by              67,968   66.4 KiB
  largest max_send_wr that fits now: 127, all else as asked
  what to do: request more rdma/wqe-mib, or ask for fewer
)");
}

TEST(RenderTest, ABoundOnContainerBytesCountsThoseAlone) {
  v1::Refusal refusal = Refusal();
  refusal.set_bound(v1::BUDGET_SOURCE_CGROUP);
  refusal.set_needed_bytes(8'192);
  refusal.set_used_bytes(8'192);
  refusal.set_budget_bytes(4'096);  // lowered meanwhile
  refusal.set_largest_max_send_wr(0);
  refusal.clear_remedy();
  EXPECT_EQ(RenderRefusal(refusal, ""),
            R"(refused: more queue memory than the budget has left
  send ring              0     0 B
  receive ring           0     0 B
  completion queue       0     0 B
  arrays             8,192   8 KiB
  overhead               0     0 B
  needed             8,192   8 KiB  container-charged bytes alone
  + used             8,192   8 KiB
  = would be        16,384  16 KiB
  budget             4,096   4 KiB  bound: cgroup
  left                   0     0 B
  short by           8,192   8 KiB
  no max_send_wr would fit now, all else as asked
)");
}

TEST(RenderTest, ARefusalByTheDeviceIsItsMessageAndTheRemedyOnce) {
  v1::Refusal refusal;
  refusal.set_reason(v1::REASON_DEVICE_LIMIT);
  refusal.set_limit("max_qp_wr");
  refusal.set_remedy("ask for less");
  EXPECT_EQ(RenderRefusal(refusal, "100 is above max_qp_wr 16"),
            "refused: 100 is above max_qp_wr 16\n"
            "  what to do: ask for less\n");
  EXPECT_EQ(RenderRefusal(refusal, "100 is above 16; ask for less"),
            "refused: 100 is above 16; ask for less\n");
}

TEST(RenderTest, OtherRefusalsAreTheirMessage) {
  v1::Refusal refusal;
  refusal.set_reason(v1::REASON_CREATE_FAILED);
  refusal.set_limit("ENOMEM");
  EXPECT_EQ(RenderRefusal(refusal, "ibv_create_qp: ENOMEM"),
            "refused: ibv_create_qp: ENOMEM\n");
}

TEST(RenderTest, AListing) {
  v1::QueuePair busy = QueuePair(12);
  busy.set_state(v1::QUEUE_PAIR_STATE_RTS);
  busy.set_outstanding_sends(511);
  busy.set_detached(true);
  EXPECT_EQ(
      RenderList({QueuePair(3), busy}),
      R"(ID  QP_NUM  DEVICE  TYPE  STATE  SEND WR/SGE  RECV WR/SGE   MEMORY  SENDS  RECVS  CLIENT
 3      20  rxe0    RC    RESET        256/4        256/1  368 KiB      0      0  app
12      29  rxe0    RC    RTS          256/4        256/1  368 KiB    511      0  app (detached)
2 queue pairs, 753,664 bytes (736 KiB)
)");
  EXPECT_EQ(RenderList({}), "no queue pairs\n");
}

TEST(RenderTest, TheBudget) {
  v1::GetBudgetResponse budget;
  auto& plugin = *budget.add_bounds();
  plugin.set_source(v1::BUDGET_SOURCE_PLUGIN);
  plugin.set_limit_bytes(64 << 20);
  plugin.set_used_bytes(16 << 20);
  plugin.set_binding(true);
  plugin.set_origin("PURSER_QUEUE_MEMORY_BYTES");
  auto& cgroup = *budget.add_bounds();
  cgroup.set_source(v1::BUDGET_SOURCE_CGROUP);
  cgroup.set_limit_bytes(256 << 20);
  cgroup.set_used_bytes(1 << 20);
  cgroup.set_container_only(true);
  cgroup.set_origin("half of memory.max");
  budget.mutable_used()->set_container_bytes(1 << 20);
  budget.mutable_used()->set_node_bytes(15 << 20);
  budget.set_headroom_bytes(48 << 20);
  budget.set_queue_pairs(1);
  budget.set_refusals(2);
  v1::GetBudgetResponse lowered = budget;
  lowered.set_queue_pair_limit(1000);
  lowered.set_overcommitted_bytes(4096);
  auto& node = *lowered.add_memory_pressure();
  node.set_scope(v1::PRESSURE_SCOPE_NODE);
  node.set_state(v1::PRESSURE_STATE_CRITICAL);
  node.set_why("97 % in use");
  lowered.add_memory_pressure()->set_state(v1::PRESSURE_STATE_NORMAL);
  EXPECT_THAT(RenderBudget(lowered),
              AllOf(HasSubstr("over-committed"), HasSubstr("4,096"),
                    HasSubstr("1 queue pair of the 1,000 allotted"),
                    HasSubstr("\nnode memory is critical: 97 % in use\n"),
                    Not(HasSubstr("container memory"))));
  EXPECT_EQ(RenderBudget(budget),
            R"(   BOUND     LIMIT    USED     LEFT  COUNTS             FROM
*  plugin   64 MiB  16 MiB   48 MiB  all                PURSER_QUEUE_MEMORY_BYTES
   cgroup  256 MiB   1 MiB  255 MiB  container-charged  half of memory.max

used, container-charged   1,048,576   1 MiB
used, node               15,728,640  15 MiB
headroom                 50,331,648  48 MiB
[##########..............................] 25.0 %
1 queue pair, 2 refusals
)");
}

TEST(RenderTest, ABudgetLoweredBelowItsUse) {
  v1::GetBudgetResponse budget;
  auto& bound = *budget.add_bounds();
  bound.set_source(v1::BUDGET_SOURCE_EXPLICIT);
  bound.set_limit_bytes(10);
  bound.set_used_bytes(20);
  bound.set_binding(true);
  EXPECT_THAT(
      RenderBudget(budget),
      testing::AllOf(HasSubstr("10 B  20 B   0 B"),
                     HasSubstr("[########################################] "
                               "100.0 %")));
}

}  // namespace
}  // namespace purser::cli
