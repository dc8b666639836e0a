// SPDX-License-Identifier: Apache-2.0
#include "planner/workload.h"

#include "gmock/gmock.h"
#include "planner/send_operations.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using queue_memory::Argument;
using queue_memory::QueuePairType;

TEST(WorkloadTest, ReadsEverything) {
  const Workload workload = Read(
      "version: v1\n"
      "name: gateway\n"
      "provider: irdma\n"
      "limits: {maxQpWr: 8192, maxQp: 1000, irdmaMaxQuanta: 65536}\n"
      "podsPerNode: 3\n"
      "completionQueues:\n"
      "  - {name: all, count: 4, cqe: 65536}\n"
      "sharedReceiveQueues:\n"
      "  - {name: pool, count: 2, maxWr: 4096, maxSge: 3}\n"
      "groups:\n"
      "  - name: clients\n"
      "    class: core\n"
      "    count: 1000\n"
      "    type: UC\n"
      "    maxSendWr: 256\n"
      "    maxSendSge: 4\n"
      "    maxInlineData: 64\n"
      "    sendOps: [send, write, invalidate]\n"
      "    completionQueue: all\n"
      "    sharedReceiveQueue: pool\n"
      "  - name: peers\n"
      "    maxRecvWr: 512\n"
      "    maxRecvSge: 2\n");
  EXPECT_EQ(workload.source, "w.yaml");
  EXPECT_EQ(workload.name, "gateway");
  EXPECT_EQ(workload.pods_per_node, 3u);
  ASSERT_TRUE(workload.device.has_value());
  EXPECT_EQ(workload.device->provider, queue_memory::Provider::kIrdma);
  EXPECT_EQ(workload.device->limits.max_qp_wr, 8192u);
  EXPECT_EQ(workload.device->limits.irdma.max_quanta, 65536u);
  EXPECT_EQ(workload.device->counts.max_qp, 1000u);
  ASSERT_EQ(workload.completion_queues.size(), 1u);
  EXPECT_EQ(workload.completion_queues[0].name, "all");
  EXPECT_EQ(workload.completion_queues[0].count, 4u);
  EXPECT_EQ(workload.completion_queues[0].cqe, 65536u);
  ASSERT_EQ(workload.shared_receive_queues.size(), 1u);
  EXPECT_EQ(workload.shared_receive_queues[0].count, 2u);
  EXPECT_EQ(workload.shared_receive_queues[0].request.max_wr, 4096u);
  EXPECT_EQ(workload.shared_receive_queues[0].request.max_sge, 3u);

  ASSERT_EQ(workload.groups.size(), 2u);
  const Group& clients = workload.groups[0];
  EXPECT_EQ(clients.name, "clients");
  EXPECT_EQ(clients.class_name, "core");
  EXPECT_EQ(clients.count, 1000u);
  EXPECT_EQ(clients.request.type, QueuePairType::kUc);
  EXPECT_EQ(clients.request.send_ops,
            queue_memory::kSendOpsPlain | queue_memory::kSendOpsBindOrInv);
  EXPECT_EQ(clients.request.max_send_wr, 256u);
  EXPECT_EQ(clients.request.max_send_sge, 4u);
  EXPECT_EQ(clients.request.max_inline_data, 64u);
  EXPECT_TRUE(clients.request.uses_srq);
  EXPECT_EQ(clients.request.max_recv_wr, 0u);
  EXPECT_EQ(clients.completion_queues, 0u);
  EXPECT_EQ(clients.shared_receive_queues, 0u);
  EXPECT_EQ(clients.mark.line, 11);
  EXPECT_EQ(
      clients.argument_marks[static_cast<size_t>(Argument::kMaxSendSge)].line,
      16);
  const Group& peers = workload.groups[1];
  EXPECT_EQ(peers.request.max_recv_wr, 512u);
  EXPECT_EQ(peers.request.max_recv_sge, 2u);
  EXPECT_FALSE(peers.completion_queues.has_value());
}

TEST(WorkloadTest, Defaults) {
  const Workload workload = Read(Groups("- name: a\n"));
  EXPECT_EQ(workload.name, "");
  EXPECT_EQ(workload.pods_per_node, 1u);
  EXPECT_FALSE(workload.device.has_value());
  ASSERT_EQ(workload.groups.size(), 1u);
  const Group& group = workload.groups[0];
  EXPECT_EQ(group.count, 1u);
  EXPECT_EQ(group.class_name, "");
  EXPECT_EQ(group.request.type, QueuePairType::kRc);
  EXPECT_EQ(group.request.send_ops, queue_memory::kDefaultSendOps);
  EXPECT_EQ(group.request.max_send_wr, 128u);
  EXPECT_EQ(group.request.max_send_sge, 1u);
  EXPECT_EQ(group.request.max_inline_data, 0u);
  EXPECT_EQ(group.request.max_recv_wr, 128u);
  EXPECT_EQ(group.request.max_recv_sge, 1u);
  EXPECT_FALSE(group.request.uses_srq);
}

TEST(WorkloadTest, InitiatorsHaveNoReceives) {
  for (const char* type : {"xrc_send", "dci"}) {
    const Workload workload =
        Read(Groups(std::string("- {name: a, type: ") + type + "}\n"));
    EXPECT_EQ(workload.groups[0].request.max_recv_wr, 0u);
    EXPECT_FALSE(HasReceiveSide(workload.groups[0]));
  }
}

TEST(WorkloadTest, TheKernelTellsTheRule) {
  const Workload workload = Read(
      "version: v1\nprovider: rxe\nkernelVersion: 6.1\ngroups: [{name: "
      "a}]\n");
  EXPECT_FALSE(workload.device->limits.writes_back_real_slots);
}

TEST(WorkloadTest, ReadsJson) {
  const Workload workload =
      Read(R"({"version": "v1", "groups": [{"name": "a", "maxSendWr": 512}]})");
  EXPECT_EQ(workload.groups[0].request.max_send_wr, 512u);
}

TEST(WorkloadTest, LargestFigures) {
  const Workload workload = Read(
      Groups("- {name: a, count: 16777216, maxSendWr: 16777216, maxSendSge: "
             "65536, maxInlineData: 1048576, maxRecvWr: 16777216}\n"));
  EXPECT_EQ(workload.groups[0].count, kMostQueuePairs);
  EXPECT_EQ(workload.groups[0].request.max_send_wr, kMostDepth);
}

TEST(SendOperationsTest, TypesHaveNamesBothWays) {
  for (const char* name :
       {"rc", "uc", "ud", "xrc_send", "raw_packet", "dci", "srd"}) {
    const auto type = QueuePairTypeFromName(name);
    ASSERT_TRUE(type.ok()) << type.status();
    EXPECT_EQ(TypeName(*type), name);
    EXPECT_TRUE(SendOperation("send", *type).ok());
  }
  EXPECT_FALSE(QueuePairTypeFromName("rd").ok());
  EXPECT_EQ(TypeName(static_cast<QueuePairType>(99)), "unknown");
}

TEST(SendOperationsTest, WhatEachTypeCanDo) {
  const auto can = [](const char* operation, QueuePairType type) {
    return SendOperation(operation, type).ok();
  };
  EXPECT_TRUE(can("atomic", QueuePairType::kRc));
  EXPECT_TRUE(can("read", QueuePairType::kDci));
  EXPECT_TRUE(can("write", QueuePairType::kUc));
  EXPECT_FALSE(can("read", QueuePairType::kUc));
  EXPECT_FALSE(can("write", QueuePairType::kUd));
  EXPECT_TRUE(can("read", QueuePairType::kSrd));
  EXPECT_TRUE(can("inline-write", QueuePairType::kSrd));
  EXPECT_FALSE(can("inline-write", QueuePairType::kRc));
  EXPECT_FALSE(can("bind", QueuePairType::kRawPacket));
}

// As editors on Windows write it.
TEST(WorkloadTest, AByteOrderMarkIsNoPartOfTheText) {
  const Workload workload = Read(
      "\xef\xbb\xbfversion: v1\r\ngroups:\r\n  - name: a\r\n    count: "
      "3\r\n");
  ASSERT_EQ(workload.groups.size(), 1u);
  EXPECT_EQ(workload.groups[0].count, 3u);
  EXPECT_EQ(workload.groups[0].mark.line, 3);
}

}  // namespace
}  // namespace purser::planner
