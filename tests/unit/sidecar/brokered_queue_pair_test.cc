// SPDX-License-Identifier: Apache-2.0
#include "sidecar/brokered_queue_pair.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

ibv_qp_attr InitAttr() { return {.qp_state = IBV_QPS_INIT, .port_num = 1}; }
constexpr int kInitMask =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

TEST(BrokeredQueuePairTest, AnIllegalModifyIsNamedAndReachesNoDevice) {
  FakeSidecar sidecar;
  const auto queue_pair = sidecar.Create(sidecar.Attach());
  const absl::Status edge =
      queue_pair->Modify({.qp_state = IBV_QPS_RTS}, IBV_QP_STATE);
  EXPECT_TRUE(absl::IsFailedPrecondition(edge)) << edge;
  const absl::Status mask =
      queue_pair->Modify(InitAttr(), IBV_QP_STATE | IBV_QP_PORT);
  EXPECT_TRUE(absl::IsInvalidArgument(mask)) << mask;
  EXPECT_THAT(Text(mask), HasSubstr("pkey_index"));
  EXPECT_EQ(sidecar.verbs().Calls("modify_qp"), 0u);
  EXPECT_TRUE(queue_pair->Modify(InitAttr(), kInitMask).ok());
  EXPECT_EQ(queue_pair->KnownState(), IBV_QPS_INIT);
}

TEST(BrokeredQueuePairTest, AModifyThatTheDeviceRefusesIsExplained) {
  FakeSidecar sidecar;
  const auto queue_pair = sidecar.Create(sidecar.Attach());
  for (const auto& [error, code] :
       {std::pair(EINVAL, absl::StatusCode::kInvalidArgument),
        std::pair(EHOSTUNREACH, absl::StatusCode::kFailedPrecondition),
        std::pair(ETIMEDOUT, absl::StatusCode::kFailedPrecondition),
        std::pair(ENOMEM, absl::StatusCode::kResourceExhausted)}) {
    sidecar.verbs().FailNext("modify_qp", error);
    const absl::Status status = queue_pair->Modify(InitAttr(), kInitMask);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(Text(status), HasSubstr(rdma::ErrnoName(error)));
  }
  sidecar.verbs().FailNext("query_qp", EIO);
  EXPECT_FALSE(queue_pair->Modify(InitAttr(), kInitMask).ok());
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_RESET);
}

TEST(BrokeredQueuePairTest, AnAsynchronousErrorShowsInTheState) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach();
  const auto queue_pair = sidecar.Create(client);
  ASSERT_TRUE(queue_pair->Modify(InitAttr(), kInitMask).ok());
  Occurrence told;
  queue_pair->events().Subscribe([&] { told.Happen(); });
  sidecar.verbs().BreakQp(queue_pair->work_queue().qp());
  ASSERT_TRUE(told.Wait());
  EXPECT_EQ(queue_pair->KnownState(), IBV_QPS_ERR);
  ASSERT_TRUE(
      queue_pair->Modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE).ok());
  EXPECT_EQ(queue_pair->KnownState(), IBV_QPS_RESET);
}

TEST(BrokeredQueuePairTest, CallsInFlightOutliveADestroyAndAreRefused) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach();
  const auto queue_pair = sidecar.Create(client);
  ASSERT_TRUE(
      sidecar.queue_pairs().Destroy(client, queue_pair->facts().id).ok());
  EXPECT_TRUE(absl::IsNotFound(queue_pair->Modify(InitAttr(), kInitMask)));
  EXPECT_TRUE(absl::IsNotFound(queue_pair->Poll(1).status()));
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_RESET);
  EXPECT_EQ(queue_pair->Destroy(absl::InternalError("again")).returned_bytes,
            0u);
  EXPECT_TRUE(absl::IsNotFound(queue_pair->Poll(1).status()))
      << "the first reason stays";
}

TEST(BrokeredQueuePairTest, PortAndOverrunEventsHurtNobody) {
  FakeSidecar sidecar;
  const auto queue_pair = sidecar.Create(sidecar.Attach());
  Occurrence told;
  queue_pair->events().Subscribe([&] { told.Happen(); });
  sidecar.verbs().SetPortState("rxe0", 1, IBV_PORT_DOWN);
  sidecar.verbs().SetPortState("rxe0", 1, IBV_PORT_ACTIVE);
  sidecar.verbs().RaiseCqEvent(queue_pair->work_queue().cq(), IBV_EVENT_CQ_ERR);
  ASSERT_TRUE(told.Wait());
  EXPECT_EQ(queue_pair->KnownState(), IBV_QPS_RESET);
}

void ToRts(FakeSidecar& sidecar, BrokeredQueuePair& queue_pair) {
  ASSERT_TRUE(queue_pair.Modify(InitAttr(), kInitMask).ok());
  ibv_qp_attr rtr{.qp_state = IBV_QPS_RTR,
                  .path_mtu = IBV_MTU_1024,
                  .dest_qp_num = queue_pair.facts().qp_num};
  rtr.ah_attr.is_global = 1;
  rtr.ah_attr.port_num = 1;
  rtr.ah_attr.grh.dgid = sidecar.device().PreferredGid()->gid;
  rtr.ah_attr.grh.sgid_index = 1;
  ASSERT_TRUE(queue_pair
                  .Modify(rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC |
                                   IBV_QP_MIN_RNR_TIMER)
                  .ok());
  ASSERT_TRUE(queue_pair
                  .Modify({.qp_state = IBV_QPS_RTS},
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                              IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC)
                  .ok());
  EXPECT_EQ(queue_pair.KnownState(), IBV_QPS_RTS);
  EXPECT_EQ(queue_pair.dest_qp_num(), queue_pair.facts().qp_num);
}

// A write to a key that does not exist: ERR, and so is the peer, which is the
// queue pair itself.
void PostSpoiltWrite(BrokeredQueuePair& queue_pair) {
  static uint8_t nothing[8];
  ibv_sge sge{.addr = reinterpret_cast<uint64_t>(nothing),
              .length = sizeof(nothing),
              .lkey = 0xdead};
  ibv_send_wr write{.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  ASSERT_EQ(queue_pair.work_queue().PostSend({&write, 1}).posted, 1u);
}

TEST(BrokeredQueuePairTest, AnErrorCompletionRefreshesTheState) {
  FakeSidecar sidecar;
  const auto queue_pair = sidecar.Create(sidecar.Attach());
  ToRts(sidecar, *queue_pair);
  PostSpoiltWrite(*queue_pair);
  EXPECT_EQ(queue_pair->KnownState(), IBV_QPS_RTS) << "nobody has told yet";
  const auto completions = queue_pair->Poll(16);
  ASSERT_TRUE(completions.ok());
  ASSERT_EQ(completions->size(), 1u);
  EXPECT_EQ(completions->front().wc.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(queue_pair->KnownState(), IBV_QPS_ERR);
}

TEST(BrokeredQueuePairTest, TheCurrentStateIsQueriedWhileSendsAreOutstanding) {
  FakeSidecar sidecar;
  const auto queue_pair = sidecar.Create(sidecar.Attach());
  ToRts(sidecar, *queue_pair);
  const uint64_t queries = sidecar.verbs().Calls("query_qp");
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_RTS);
  EXPECT_EQ(sidecar.verbs().Calls("query_qp"), queries) << "idle: known";
  PostSpoiltWrite(*queue_pair);
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_ERR);
  EXPECT_EQ(sidecar.verbs().Calls("query_qp"), queries + 1);
}

TEST(BrokeredQueuePairTest, AFailureStaysKnownWhenTheStateCannotBeQueried) {
  FakeSidecar sidecar;
  const auto queue_pair = sidecar.Create(sidecar.Attach());
  queue_pair->events().FailureEvent();
  sidecar.verbs().FailNext("query_qp", EIO);
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_ERR);
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_RESET);
}

}  // namespace
}  // namespace purser::sidecar
