// SPDX-License-Identifier: Apache-2.0
#include "sidecar/modify_attributes.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sidecar/fake_sidecar.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ModifyAttributesTest : public ::testing::Test {
 protected:
  ModifyAttributesTest() { request_.set_state(v1::QUEUE_PAIR_STATE_RTR); }

  absl::StatusOr<ModifyAttributes> Convert() {
    return ModifyAttributesOf(request_, sidecar_.device());
  }
  std::string Refusal() {
    const absl::Status status = Convert().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  v1::AddressVector& Av() {
    v1::AddressVector& av = *request_.mutable_ah_attr();
    const ibv_gid gid = fakes::Ipv4Gid("192.0.2.9");
    av.set_dgid(gid.raw, sizeof(gid.raw));
    return av;
  }

  FakeSidecar sidecar_;
  v1::ModifyQueuePairRequest request_;
};

TEST_F(ModifyAttributesTest, PresentFieldsAreInTheMask) {
  EXPECT_EQ(Convert()->mask, IBV_QP_STATE);
  EXPECT_EQ(Convert()->attr.qp_state, IBV_QPS_RTR);
  request_.set_port_num(1);
  request_.set_pkey_index(0);
  request_.set_qp_access_flags(IBV_ACCESS_REMOTE_WRITE);
  request_.set_qkey(0xffffffff);
  request_.set_path_mtu(1024);
  request_.set_dest_qp_num(0xffffff);
  request_.set_rq_psn(0xffffff);
  request_.set_sq_psn(1);
  request_.set_max_dest_rd_atomic(2);
  request_.set_max_rd_atomic(3);
  request_.set_min_rnr_timer(31);
  request_.set_timeout(14);
  request_.set_retry_cnt(7);
  request_.set_rnr_retry(6);
  const auto result = Convert();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->mask,
            IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY | IBV_QP_PATH_MTU |
                IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MAX_QP_RD_ATOMIC |
                IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                IBV_QP_RNR_RETRY);
  const ibv_qp_attr& attr = result->attr;
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE});
  EXPECT_EQ(attr.qkey, 0xffffffffu);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attr.dest_qp_num, 0xffffffu);
  EXPECT_EQ(attr.rq_psn, 0xffffffu);
  EXPECT_EQ(attr.sq_psn, 1u);
  EXPECT_EQ(attr.max_dest_rd_atomic, 2);
  EXPECT_EQ(attr.max_rd_atomic, 3);
  EXPECT_EQ(attr.min_rnr_timer, 31);
  EXPECT_EQ(attr.timeout, 14);
  EXPECT_EQ(attr.retry_cnt, 7);
  EXPECT_EQ(attr.rnr_retry, 6);
}

TEST_F(ModifyAttributesTest, TakesThePreferredGidOfThisMoment) {
  Av();
  auto result = Convert();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->mask, IBV_QP_STATE | IBV_QP_AV);
  EXPECT_EQ(result->attr.ah_attr.is_global, 1);
  EXPECT_EQ(result->attr.ah_attr.port_num, 1);
  EXPECT_EQ(result->attr.ah_attr.grh.sgid_index, 1);
  EXPECT_EQ(result->attr.ah_attr.grh.hop_limit, 64);
  const ibv_gid peer = fakes::Ipv4Gid("192.0.2.9");
  EXPECT_EQ(
      std::memcmp(result->attr.ah_attr.grh.dgid.raw, peer.raw, sizeof(peer)),
      0);
  // The address was removed and added again, as soft-RoCE does.
  sidecar_.verbs().SetGid("rxe0", 1, 1, ibv_gid{});
  sidecar_.verbs().SetGid("rxe0", 1, 5, fakes::Ipv4Gid("192.0.2.1"));
  sidecar_.sysfs().SetGid(
      "rxe0", 1,
      {5, "0000:0000:0000:0000:0000:ffff:c000:0201", "RoCE v2", "eth0"});
  EXPECT_EQ(Convert()->attr.ah_attr.grh.sgid_index, 5);
  Av().set_sgid_index(7);
  EXPECT_EQ(Convert()->attr.ah_attr.grh.sgid_index, 7);
}

TEST_F(ModifyAttributesTest, WithoutAnyGidSaysWhatThePortLacks) {
  for (int index : {0, 1}) sidecar_.verbs().SetGid("rxe0", 1, index, ibv_gid{});
  Av();
  const absl::Status status = Convert().status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("IP address"));
}

TEST_F(ModifyAttributesTest, NamesValuesThatVerbsWouldCutOff) {
  const auto refused = [&](auto set) {
    v1::ModifyQueuePairRequest saved = request_;
    set(request_);
    const std::string text = Refusal();
    request_ = saved;
    return text;
  };
  using R = v1::ModifyQueuePairRequest;
  EXPECT_THAT(refused([](R& r) { r.set_rq_psn(1 << 24); }),
              AllOf(HasSubstr("rq_psn 16777216"), HasSubstr("16777215")));
  EXPECT_THAT(refused([](R& r) { r.set_sq_psn(1 << 24); }),
              HasSubstr("sq_psn"));
  EXPECT_THAT(refused([](R& r) { r.set_dest_qp_num(1 << 24); }),
              HasSubstr("dest_qp_num"));
  EXPECT_THAT(refused([](R& r) { r.set_timeout(32); }), HasSubstr("timeout"));
  EXPECT_THAT(refused([](R& r) { r.set_retry_cnt(8); }),
              HasSubstr("retry_cnt"));
  EXPECT_THAT(refused([](R& r) { r.set_rnr_retry(8); }),
              HasSubstr("rnr_retry"));
  EXPECT_THAT(refused([](R& r) { r.set_min_rnr_timer(32); }),
              HasSubstr("min_rnr_timer"));
  EXPECT_THAT(refused([](R& r) { r.set_max_rd_atomic(256); }),
              HasSubstr("max_rd_atomic"));
  EXPECT_THAT(refused([](R& r) { r.set_max_dest_rd_atomic(256); }),
              HasSubstr("max_dest_rd_atomic"));
  EXPECT_THAT(refused([](R& r) { r.set_pkey_index(1 << 16); }),
              HasSubstr("pkey_index"));
  EXPECT_THAT(refused([](R& r) { r.set_port_num(2); }),
              HasSubstr("uses port 1 of rxe0"));
  EXPECT_THAT(refused([](R& r) { r.set_qp_access_flags(0x100); }),
              HasSubstr("qp_access_flags 0x100"));
}

TEST_F(ModifyAttributesTest, ChecksPathMtu) {
  for (uint32_t mtu : {0u, 1u, 128u, 1500u, 8192u, UINT32_MAX}) {
    request_.set_path_mtu(mtu);
    EXPECT_THAT(Refusal(), HasSubstr("none of 256")) << mtu;
  }
  request_.set_path_mtu(2048);
  EXPECT_THAT(Refusal(), HasSubstr("above 1024, the active MTU of rxe0"));
  request_.set_path_mtu(256);
  EXPECT_EQ(Convert()->attr.path_mtu, IBV_MTU_256);
}

TEST_F(ModifyAttributesTest, ChecksTheAddressVector) {
  Av().set_dgid("short");
  EXPECT_THAT(Refusal(), HasSubstr("dgid has 5 bytes"));
  request_.mutable_ah_attr()->clear_dgid();
  EXPECT_THAT(Refusal(), HasSubstr("Ethernet"));
  Av().set_sgid_index(256);
  EXPECT_THAT(Refusal(), HasSubstr("sgid_index 256"));
  Av().set_sgid_index(1);
  Av().set_hop_limit(256);
  EXPECT_THAT(Refusal(), HasSubstr("hop_limit"));
  Av().set_hop_limit(1);
  Av().set_traffic_class(256);
  EXPECT_THAT(Refusal(), HasSubstr("traffic_class"));
  Av().set_traffic_class(0);
  Av().set_flow_label(1 << 20);
  EXPECT_THAT(Refusal(), HasSubstr("flow_label"));
  Av().set_flow_label(0);
  Av().set_sl(16);
  EXPECT_THAT(Refusal(), HasSubstr("sl 16"));
  Av().set_sl(0);
  Av().set_dlid(1 << 16);
  EXPECT_THAT(Refusal(), HasSubstr("dlid"));
}

TEST_F(ModifyAttributesTest, ChecksTheState) {
  for (int state : {0, 8, -1, 1000}) {
    request_.set_state(static_cast<v1::QueuePairState>(state));
    EXPECT_THAT(Refusal(), HasSubstr("QueuePairState"));
  }
  request_.set_state(v1::QUEUE_PAIR_STATE_RESET);
  EXPECT_EQ(Convert()->attr.qp_state, IBV_QPS_RESET);
  request_.set_state(v1::QUEUE_PAIR_STATE_ERR);
  EXPECT_EQ(Convert()->attr.qp_state, IBV_QPS_ERR);
}

}  // namespace
}  // namespace purser::sidecar
