// SPDX-License-Identifier: Apache-2.0
#include "sidecar/send_operations.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sidecar/calls_fixture.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using queue_memory::Provider;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Queue pairs of an rxe0 and an mlx5_0.
class SendOperationsTest : public CallsTest {
 protected:
  SendOperationsTest() : CallsTest({.mlx5 = true}) {}

  v1::QueuePair CreateOn(const std::string& device,
                         std::initializer_list<v1::SendOpcode> operations) {
    v1::CreateQueuePairRequest request = CreateRequest();
    request.set_device(device);
    request.mutable_cap()->set_max_send_wr(256);
    request.mutable_cap()->set_max_send_sge(4);
    request.mutable_cap()->set_max_recv_sge(1);
    request.mutable_cap()->set_max_inline_data(64);
    for (const v1::SendOpcode operation : operations)
      request.add_send_operations(operation);
    v1::QueuePair queue_pair;
    const grpc::Status status = Create(request, &queue_pair);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return queue_pair;
  }
  static uint64_t SendBytes(const v1::QueuePair& queue_pair) {
    return queue_pair.memory().send().container_bytes();
  }
};

// facts of rdma-core's sizing code: 131,072 bytes by plain ibv_create_qp.
TEST_F(SendOperationsTest, Mlx5MakesASmallerRingOfFewerOperations) {
  const v1::QueuePair any = CreateOn("mlx5_0", {});
  EXPECT_EQ(SendBytes(any), 131072u);
  EXPECT_EQ(any.send_operations_size(), 0);
  const v1::QueuePair narrow =
      CreateOn("mlx5_0", {v1::SEND_OPCODE_RDMA_READ, v1::SEND_OPCODE_SEND});
  EXPECT_EQ(SendBytes(narrow), 32768u);
  EXPECT_LT(narrow.memory().total_bytes() + 98304, any.memory().total_bytes());
  EXPECT_THAT(narrow.send_operations(),
              ElementsAre(v1::SEND_OPCODE_SEND, v1::SEND_OPCODE_RDMA_READ));
  // One that alone would be narrower still is charged as what is created.
  EXPECT_EQ(SendBytes(CreateOn("mlx5_0", {v1::SEND_OPCODE_SEND})), 32768u);
  EXPECT_EQ(sidecar_.counters().model_mismatches.Snapshot().size(), 0u);
}

TEST_F(SendOperationsTest, WhatWasNotDeclaredIsRefusedAndCounted) {
  for (const char* device : {"rxe0", "mlx5_0"}) {
    SCOPED_TRACE(device);
    const v1::QueuePair queue_pair =
        CreateOn(device, {v1::SEND_OPCODE_RDMA_WRITE, v1::SEND_OPCODE_SEND});
    Connect(queue_pair);
    v1::PostSendRequest request =
        SendRequest(queue_pair.id(), v1::SEND_OPCODE_RDMA_WRITE);
    request.add_work_requests()->set_opcode(v1::SEND_OPCODE_RDMA_READ);
    request.add_work_requests()->set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
    const uint64_t before =
        CountOf(sidecar_.counters().post_failures, std::string("send"),
                std::string("EOPNOTSUPP"));
    const v1::PostResponse response = PostSend(request);
    EXPECT_EQ(response.posted(), 1u);
    EXPECT_EQ(response.failure().error_number(), EOPNOTSUPP);
    EXPECT_THAT(response.failure().message(), HasSubstr("SEND, RDMA_WRITE"));
    EXPECT_EQ(CountOf(sidecar_.counters().post_failures, std::string("send"),
                      std::string("EOPNOTSUPP")),
              before + 1);
  }
}

TEST_F(SendOperationsTest, AnythingGoesWhereNothingWasDeclared) {
  const v1::QueuePair queue_pair = CreateOn("mlx5_0", {});
  Connect(queue_pair);
  for (int opcode = v1::SendOpcode_MIN; opcode <= v1::SendOpcode_MAX;
       ++opcode) {
    if (opcode == v1::SEND_OPCODE_SEND ||
        opcode == v1::SEND_OPCODE_SEND_WITH_IMM ||
        opcode == v1::SEND_OPCODE_RDMA_WRITE_WITH_IMM)
      continue;  // they would wait for a receive
    EXPECT_EQ(PostSend(SendRequest(queue_pair.id(),
                                   static_cast<v1::SendOpcode>(opcode)))
                  .posted(),
              1u)
        << opcode;
  }
}

TEST_F(SendOperationsTest, AnUnknownOperationIsRefusedAtCreation) {
  v1::CreateQueuePairRequest request = CreateRequest();
  request.add_send_operations(static_cast<v1::SendOpcode>(77));
  const grpc::Status status = Create(request);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("77 is none of SendOpcode"));
}

TEST(SendOpsTest, AreLeftOutWhereTheRingIsTheSame) {
  const queue_memory::QueuePairRequest request{.max_send_wr = 100,
                                               .max_send_sge = 2,
                                               .max_recv_wr = 100,
                                               .max_recv_sge = 1};
  const auto narrowed = [&](Provider provider, uint64_t declared) {
    return CreateFlags(WithSendOps(provider, {}, request, declared)) != 0;
  };
  EXPECT_TRUE(narrowed(Provider::kMlx5, IBV_QP_EX_WITH_SEND));
  EXPECT_FALSE(narrowed(Provider::kMlx5, 0));
  for (const Provider provider :
       {Provider::kRxe, Provider::kIrdma, Provider::kEfa, Provider::kUnknown})
    EXPECT_FALSE(narrowed(provider, IBV_QP_EX_WITH_SEND));
}

TEST(SendOpsTest, EveryOpcodeOfTheApiHasABit) {
  uint64_t all = 0;
  for (int opcode = v1::SendOpcode_MIN; opcode <= v1::SendOpcode_MAX; ++opcode)
    all |= SendOpOf(static_cast<ibv_wr_opcode>(opcode));
  EXPECT_EQ(all, kPlainSendOps);
  EXPECT_EQ(SendOpOf(IBV_WR_ATOMIC_CMP_AND_SWP), 0u);
  EXPECT_EQ(SendOpNames(all),
            "SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ");
}

}  // namespace
}  // namespace purser::sidecar
