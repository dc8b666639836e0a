// SPDX-License-Identifier: Apache-2.0
#include "rdma/queue_pair_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace purser::rdma {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kInit =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(QueuePairStatesTest, ConnectsAnRcQueuePair) {
  EXPECT_TRUE(CheckModify(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, kInit).ok());
  EXPECT_TRUE(CheckModify(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, kRtr).ok());
  EXPECT_TRUE(CheckModify(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, kRts).ok());
}

TEST(QueuePairStatesTest, StateNeedNotBeInTheMask) {
  EXPECT_TRUE(
      CheckModify(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, kRts & ~IBV_QP_STATE)
          .ok());
}

TEST(QueuePairStatesTest, ConnectsUcAndUd) {
  EXPECT_TRUE(
      CheckModify(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR,
                  kRtr & ~IBV_QP_MAX_DEST_RD_ATOMIC & ~IBV_QP_MIN_RNR_TIMER)
          .ok());
  EXPECT_TRUE(
      CheckModify(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN).ok());
  EXPECT_TRUE(CheckModify(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
                          IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
                  .ok());
  EXPECT_TRUE(
      CheckModify(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE).ok());
}

TEST(QueuePairStatesTest, LegalEdgesAreThoseOfTheSpecification) {
  const std::map<ibv_qp_state, std::set<ibv_qp_state>> legal = {
      {IBV_QPS_RESET, {IBV_QPS_RESET, IBV_QPS_INIT}},
      {IBV_QPS_INIT, {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RTR}},
      {IBV_QPS_RTR, {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS}},
      {IBV_QPS_RTS, {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS, IBV_QPS_SQD}},
      {IBV_QPS_SQD, {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS, IBV_QPS_SQD}},
      {IBV_QPS_SQE, {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS}},
      {IBV_QPS_ERR, {IBV_QPS_RESET, IBV_QPS_ERR}}};
  for (const auto& [from, targets] : legal) {
    for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; ++to) {
      const absl::Status status = CheckModify(
          IBV_QPT_RC, from, static_cast<ibv_qp_state>(to), IBV_QP_STATE);
      EXPECT_EQ(!absl::IsFailedPrecondition(status),
                targets.contains(static_cast<ibv_qp_state>(to)))
          << StateName(from) << " " << status;
    }
  }
}

TEST(QueuePairStatesTest, IllegalEdgeNamesTheLegalOnes) {
  EXPECT_EQ(Message(CheckModify(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTS, kRts)),
            "RESET -> RTS is no legal edge; from RESET go to RESET, INIT");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CheckModify(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_ERR, IBV_QP_STATE)));
}

TEST(QueuePairStatesTest, MissingAndSurplusAreNamed) {
  const absl::Status status = CheckModify(
      IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
      (kRts & ~IBV_QP_TIMEOUT & ~IBV_QP_RETRY_CNT) | IBV_QP_MAX_DEST_RD_ATOMIC);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(Message(status),
            "RTR -> RTS of an RC queue pair needs timeout, retry_cnt; may not "
            "set max_dest_rd_atomic, which belongs to INIT -> RTR");
}

TEST(QueuePairStatesTest, SurplusThatNoEdgeTakes) {
  EXPECT_THAT(
      Message(CheckModify(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR,
                          IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)),
      AllOf(HasSubstr("min_rnr_timer, which no edge of UC takes"),
            Not(HasSubstr("needs"))));
  EXPECT_THAT(
      Message(CheckModify(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 1 << 30)),
      HasSubstr("unknown attribute bits 0x40000000"));
}

TEST(QueuePairStatesTest, CurStateOnlyFromRunningStates) {
  EXPECT_TRUE(CheckModify(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS,
                          IBV_QP_STATE | IBV_QP_CUR_STATE)
                  .ok());
  EXPECT_THAT(Message(CheckModify(IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_RESET,
                                  IBV_QP_STATE | IBV_QP_CUR_STATE)),
              HasSubstr("may not set cur_qp_state, which belongs to RTR"));
}

TEST(QueuePairStatesTest, ResetAndErrTakeNoAttribute) {
  for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_ERR}) {
    EXPECT_TRUE(CheckModify(IBV_QPT_RC, IBV_QPS_RTS, to, IBV_QP_STATE).ok());
    EXPECT_FALSE(
        CheckModify(IBV_QPT_RC, IBV_QPS_RTS, to, IBV_QP_STATE | IBV_QP_PORT)
            .ok());
  }
}

TEST(QueuePairStatesTest, DriverTypesHaveTheirOwnMasks) {
  EXPECT_TRUE(CheckModify(IBV_QPT_DRIVER, IBV_QPS_RTR, IBV_QPS_RTS,
                          IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY)
                  .ok());
  EXPECT_FALSE(CheckModify(IBV_QPT_DRIVER, IBV_QPS_RESET, IBV_QPS_RTS, 0).ok());
}

TEST(QueuePairStatesTest, UnknownStates) {
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CheckModify(IBV_QPT_RC, IBV_QPS_UNKNOWN, IBV_QPS_INIT, kInit)));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckModify(
      IBV_QPT_RC, IBV_QPS_RESET, static_cast<ibv_qp_state>(99), kInit)));
  EXPECT_STREQ(StateName(static_cast<ibv_qp_state>(99)), "UNKNOWN");
}

TEST(QueuePairStatesTest, Names) {
  EXPECT_EQ(AttrMaskNames(IBV_QP_PORT | IBV_QP_PKEY_INDEX), "PKEY_INDEX|PORT");
  EXPECT_EQ(AttrMaskNames(0), "");
  EXPECT_EQ(AttrMaskNames(1 << 30), "0x40000000");
  EXPECT_STREQ(QueuePairTypeName(IBV_QPT_RC), "RC");
  EXPECT_STREQ(QueuePairTypeName(IBV_QPT_XRC_SEND), "XRC_SEND");
  EXPECT_STREQ(StateName(IBV_QPS_SQD), "SQD");
}

}  // namespace
}  // namespace purser::rdma
