// SPDX-License-Identifier: Apache-2.0
//
// What the verbs fake's wire has beyond soft-RoCE (verbs_contract_*_test.cc):
// two pods on one fabric, a wire that can be held, and hardware's ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "rdma/handles.h"
#include "tests/fakes/fake_verbs.h"

namespace purser::fakes {
namespace {

constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

// One pod: a device, a queue pair and a registered buffer.
struct Pod {
  Pod(const std::shared_ptr<VerbsFabric>& fabric, FakeDevice device)
      : verbs(fabric), gid(device.ports[0].gids[1]) {
    const std::string name = device.name;
    verbs.AddDevice(std::move(device));
    context = *rdma::OpenDevice(verbs, name);
    pd = *rdma::AllocPd(verbs, context);
    channel = *rdma::CreateCompChannel(verbs, context);
    cq = *rdma::CreateCq(verbs, context, 64, nullptr, channel);
    mr = *rdma::RegMr(verbs, pd, buffer, sizeof(buffer), kAllAccess);
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 2,
                .max_recv_sge = 2};
    attr.qp_type = IBV_QPT_RC;
    qp = *rdma::CreateQp(verbs, pd, attr);
  }

  absl::Status ToInit() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return verbs.ModifyQp(
        qp.get(), &attr,
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  absl::Status ToRtr(const Pod& peer, uint32_t rq_psn = 100,
                     uint8_t max_dest_rd_atomic = 1) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qp->qp_num;
    attr.rq_psn = rq_psn;
    attr.max_dest_rd_atomic = max_dest_rd_atomic;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.ah_attr.grh.sgid_index = 1;
    return verbs.ModifyQp(qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                              IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }
  absl::Status ToRts(uint8_t rnr_retry = 7, uint8_t max_rd_atomic = 1) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = rnr_retry;
    attr.sq_psn = 100;
    attr.max_rd_atomic = max_rd_atomic;
    return verbs.ModifyQp(qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                              IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC);
  }
  absl::Status To(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return verbs.ModifyQp(qp.get(), &attr, IBV_QP_STATE);
  }
  ibv_qp_state State() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_TRUE(verbs.QueryQp(qp.get(), &attr, IBV_QP_STATE, &init).ok());
    return attr.qp_state;
  }

  ibv_sge Sge(size_t offset, uint32_t length) const {
    return {reinterpret_cast<uint64_t>(buffer + offset), length, mr->lkey};
  }
  int Send(uint64_t wr_id, uint32_t length, int flags = IBV_SEND_SIGNALED,
           ibv_wr_opcode opcode = IBV_WR_SEND, const Pod* peer = nullptr,
           size_t remote_offset = 0) {
    ibv_sge sge = Sge(0, length);
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = static_cast<unsigned>(flags);
    if (peer != nullptr) {
      wr.wr.rdma.remote_addr =
          reinterpret_cast<uint64_t>(peer->buffer + remote_offset);
      wr.wr.rdma.rkey = peer->mr->rkey;
    }
    ibv_send_wr* bad = nullptr;
    return verbs.PostSend(qp.get(), &wr, &bad);
  }
  int Receive(uint64_t wr_id, size_t offset, uint32_t length) {
    ibv_sge sge = Sge(offset, length);
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return verbs.PostRecv(qp.get(), &wr, &bad);
  }
  std::vector<ibv_wc> Poll() {
    std::vector<ibv_wc> completions(256);
    const int count = verbs.PollCq(cq.get(), 256, completions.data());
    EXPECT_GE(count, 0);
    completions.resize(static_cast<size_t>(count));
    return completions;
  }
  // The only completion there is.
  ibv_wc PollOne() {
    const std::vector<ibv_wc> completions = Poll();
    EXPECT_EQ(completions.size(), 1u);
    return completions.empty() ? ibv_wc{} : completions[0];
  }

  FakeVerbs verbs;
  ibv_gid gid;
  char buffer[8192] = {};
  rdma::Context context;
  rdma::ProtectionDomain pd;
  rdma::CompletionChannel channel;
  rdma::CompletionQueue cq;
  rdma::MemoryRegion mr;
  rdma::QueuePair qp;
};

class FakeWireTest : public ::testing::Test {
 protected:
  void Connect() {
    ASSERT_TRUE(a_.ToInit().ok());
    ASSERT_TRUE(b_.ToInit().ok());
    ASSERT_TRUE(a_.ToRtr(b_).ok());
    ASSERT_TRUE(b_.ToRtr(a_).ok());
    ASSERT_TRUE(a_.ToRts().ok());
    ASSERT_TRUE(b_.ToRts().ok());
  }

  std::shared_ptr<VerbsFabric> fabric_ = NewFabric();
  Pod a_{fabric_, RxeDevice("rxe0", "192.0.2.1")};
  Pod b_{fabric_, RxeDevice("rxe0", "192.0.2.2")};
};

TEST_F(FakeWireTest, SendFillsTheReceive) {
  Connect();
  ASSERT_EQ(b_.Receive(7, 4096, 100), 0);
  std::strcpy(a_.buffer, "hello");
  ASSERT_EQ(a_.Send(1, 6), 0);
  EXPECT_STREQ(b_.buffer + 4096, "hello");
  const ibv_wc sent = a_.PollOne();
  EXPECT_EQ(sent.wr_id, 1u);
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);
  EXPECT_EQ(sent.qp_num, a_.qp->qp_num);
  const ibv_wc received = b_.PollOne();
  EXPECT_EQ(received.wr_id, 7u);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.byte_len, 6u);
  EXPECT_EQ(received.qp_num, b_.qp->qp_num);
}

TEST_F(FakeWireTest, InlineDataIsTakenAtThePost) {
  Connect();
  fabric_.reset();
  a_.verbs.HoldWire();
  ASSERT_EQ(b_.Receive(1, 0, 100), 0);
  std::strcpy(a_.buffer, "early");
  ASSERT_EQ(a_.Send(1, 6, IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
  std::strcpy(a_.buffer, "later");
  EXPECT_TRUE(a_.verbs.Step());
  EXPECT_STREQ(b_.buffer, "early");
  EXPECT_FALSE(a_.verbs.Step());
  EXPECT_EQ(a_.Send(1, 600, IBV_SEND_INLINE), EINVAL);
}

class HardwareTest : public FakeWireTest {
 protected:
  HardwareTest() {
    c_.gid = Ipv4Gid("192.0.2.3");
    d_.gid = Ipv4Gid("192.0.2.4");
  }
  void ConnectHardware() {
    ASSERT_TRUE(c_.ToInit().ok());
    ASSERT_TRUE(d_.ToInit().ok());
    ASSERT_TRUE(c_.ToRtr(d_).ok());
    ASSERT_TRUE(d_.ToRtr(c_).ok());
    ASSERT_TRUE(c_.ToRts().ok());
    ASSERT_TRUE(d_.ToRts().ok());
  }

  Pod c_{fabric_, Mlx5Device("mlx5_0", "192.0.2.3")};
  Pod d_{fabric_, Mlx5Device("mlx5_0", "192.0.2.4")};
};

TEST_F(HardwareTest, APollFreesTheSlots) {
  ConnectHardware();
  int posted = 0;
  while (c_.Send(0, 1, posted == 9 ? IBV_SEND_SIGNALED : 0, IBV_WR_RDMA_WRITE,
                 &d_) == 0)
    ++posted;
  EXPECT_EQ(posted, 16);
  EXPECT_EQ(c_.Poll().size(), 1u);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(c_.Send(0, 1, 0, IBV_WR_RDMA_WRITE, &d_), 0);
  EXPECT_EQ(c_.Send(0, 1, 0, IBV_WR_RDMA_WRITE, &d_), ENOMEM);
}

TEST_F(HardwareTest, SendBeforeRtsIsRefusedAndNotKept) {
  ASSERT_TRUE(c_.ToInit().ok());
  EXPECT_EQ(c_.Send(1, 4), EINVAL);
  ConnectHardware();
  EXPECT_TRUE(c_.Poll().empty());
}

TEST_F(HardwareTest, StatusesArePrecise) {
  ConnectHardware();
  ASSERT_EQ(d_.Receive(5, 0, 2), 0);
  ASSERT_EQ(c_.Send(1, 4), 0);
  EXPECT_EQ(c_.PollOne().status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(d_.PollOne().status, IBV_WC_LOC_LEN_ERR);
  ASSERT_EQ(d_.Receive(6, 0, 2), 0);  // posted in ERR
  EXPECT_EQ(d_.PollOne().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(HardwareTest, ResetTakesCompletionsAlong) {
  ConnectHardware();
  ASSERT_EQ(c_.Send(1, 1, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE, &d_), 0);
  ASSERT_TRUE(c_.To(IBV_QPS_RESET).ok());
  EXPECT_TRUE(c_.Poll().empty());
}

TEST_F(FakeWireTest, WaitsForThePeerToBeReadyAndForAReceive) {
  ASSERT_TRUE(a_.ToInit().ok());
  ASSERT_TRUE(b_.ToInit().ok());
  ASSERT_TRUE(a_.ToRtr(b_).ok());
  ASSERT_TRUE(a_.ToRts().ok());
  ASSERT_EQ(a_.Send(1, 4), 0);
  EXPECT_TRUE(a_.Poll().empty());
  ASSERT_TRUE(b_.ToRtr(a_).ok());
  EXPECT_TRUE(a_.Poll().empty());
  ASSERT_EQ(b_.Receive(2, 0, 8), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_SUCCESS);
}

TEST_F(FakeWireTest, WrongAddressOrSequenceNumberGetsNoAnswer) {
  ASSERT_TRUE(a_.ToInit().ok());
  ASSERT_TRUE(b_.ToInit().ok());
  b_.gid = Ipv4Gid("192.0.2.99");
  ASSERT_TRUE(a_.ToRtr(b_).ok());
  ASSERT_TRUE(b_.ToRtr(a_, 5).ok());
  ASSERT_TRUE(a_.ToRts().ok());
  ASSERT_TRUE(b_.ToRts().ok());
  ASSERT_EQ(a_.Send(1, 4), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_RETRY_EXC_ERR);
  ASSERT_TRUE(a_.To(IBV_QPS_RESET).ok());
  ASSERT_TRUE(a_.ToInit().ok());
  b_.gid = Ipv4Gid("192.0.2.2");
  ASSERT_TRUE(a_.ToRtr(b_).ok());
  ASSERT_TRUE(a_.ToRts().ok());
  ASSERT_EQ(a_.Send(2, 4), 0);  // starts at 100, the peer expects 5
  EXPECT_EQ(a_.PollOne().status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(FakeWireTest, FailedPostNamesTheFirstRequest) {
  Connect();
  a_.verbs.FailNext("post_send", EIO);
  EXPECT_EQ(a_.Send(1, 4), EIO);
  EXPECT_TRUE(a_.Poll().empty());
}

TEST_F(FakeWireTest, ResetDropsWhatIsPosted) {
  Connect();
  a_.verbs.HoldWire();
  ASSERT_EQ(a_.Send(1, 4), 0);
  ASSERT_TRUE(a_.To(IBV_QPS_RESET).ok());
  a_.verbs.ReleaseWire();
  EXPECT_TRUE(a_.Poll().empty());
}

TEST_F(FakeWireTest, PortDownBreaksASend) {
  Connect();
  a_.verbs.SetPortState("rxe0", 1, IBV_PORT_DOWN);
  ASSERT_EQ(a_.Send(1, 4), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(a_.State(), IBV_QPS_ERR);
}

TEST_F(FakeWireTest, SixteenThreadsAtOnce) {
  Connect();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      Pod& pod = t % 2 == 0 ? a_ : b_;
      for (int i = 0; i < 50; ++i) {
        ibv_qp_init_attr attr{};
        attr.send_cq = attr.recv_cq = pod.cq.get();
        attr.cap.max_send_wr = 4;
        attr.cap.max_send_sge = 1;
        attr.qp_type = IBV_QPT_RC;
        auto qp = rdma::CreateQp(pod.verbs, pod.pd, attr);
        EXPECT_TRUE(qp.ok());
        EXPECT_EQ(pod.Send(1, 0, 0, IBV_WR_RDMA_WRITE, t % 2 == 0 ? &b_ : &a_),
                  0);
        pod.Poll();
        pod.verbs.LiveObjects();
      }
    });
  threads.clear();
  EXPECT_EQ(a_.verbs.LiveObjects().at("qp"), 1);
}

}  // namespace
}  // namespace purser::fakes
