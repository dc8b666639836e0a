// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's data path: two pods' queue pairs on one fabric.
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
  Pod(const std::shared_ptr<FakeFabric>& fabric, FakeDevice device)
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

  std::shared_ptr<FakeFabric> fabric_ = NewFabric();
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

TEST_F(FakeWireTest, WriteAndRead) {
  Connect();
  std::strcpy(a_.buffer, "written");
  ASSERT_EQ(a_.Send(1, 8, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE, &b_, 512), 0);
  EXPECT_STREQ(b_.buffer + 512, "written");
  std::strcpy(b_.buffer + 1024, "read");
  ASSERT_EQ(a_.Send(2, 5, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ, &b_, 1024), 0);
  EXPECT_STREQ(a_.buffer, "read");
  const auto completions = a_.Poll();
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_EQ(completions[0].opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(completions[1].opcode, IBV_WC_RDMA_READ);
  EXPECT_TRUE(b_.Poll().empty());
}

TEST_F(FakeWireTest, WriteWithImmediateConsumesAReceive) {
  Connect();
  ASSERT_EQ(a_.Send(1, 4, 0, IBV_WR_RDMA_WRITE_WITH_IMM, &b_), 0);
  EXPECT_TRUE(b_.Poll().empty());
  ASSERT_EQ(b_.Receive(3, 0, 0), 0);
  const ibv_wc received = b_.PollOne();
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_NE(received.wc_flags & IBV_WC_WITH_IMM, 0u);
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

TEST_F(FakeWireTest, UnsignalledSuccessLeavesNoCompletion) {
  Connect();
  ASSERT_EQ(a_.Send(1, 4, 0, IBV_WR_RDMA_WRITE, &b_), 0);
  EXPECT_TRUE(a_.Poll().empty());
}

TEST_F(FakeWireTest, FullSendQueueIsEnomemAtTheExactRequest) {
  Connect();
  a_.verbs.HoldWire();
  std::vector<ibv_send_wr> requests(40);
  ibv_sge sge = a_.Sge(0, 1);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i] = {};
    requests[i].sg_list = &sge;
    requests[i].num_sge = 1;
    requests[i].opcode = IBV_WR_SEND;
    if (i + 1 < requests.size()) requests[i].next = &requests[i + 1];
  }
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(a_.verbs.PostSend(a_.qp.get(), &requests[0], &bad), ENOMEM);
  EXPECT_EQ(bad, &requests[31]);  // asked 16, the ring takes 31
  for (int i = 0; i < 31; ++i) ASSERT_EQ(b_.Receive(0, 0, 8), 0);
  EXPECT_EQ(b_.Receive(0, 0, 8), ENOMEM);
  a_.verbs.ReleaseWire();
  EXPECT_EQ(a_.Send(1, 1), 0);  // freed without a poll
}

TEST_F(FakeWireTest, OnHardwareAPollFreesTheSlots) {
  Pod c(fabric_, Mlx5Device("mlx5_0", "192.0.2.3"));
  c.gid = Ipv4Gid("192.0.2.3");
  ASSERT_TRUE(c.ToInit().ok());
  ASSERT_TRUE(b_.ToInit().ok());
  ASSERT_TRUE(c.ToRtr(b_).ok());
  ASSERT_TRUE(b_.ToRtr(c).ok());
  ASSERT_TRUE(c.ToRts().ok());
  int posted = 0;
  while (c.Send(0, 1, posted == 9 ? IBV_SEND_SIGNALED : 0, IBV_WR_RDMA_WRITE,
                &b_) == 0)
    ++posted;
  EXPECT_EQ(posted, 16);
  EXPECT_EQ(c.Poll().size(), 1u);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(c.Send(0, 1, 0, IBV_WR_RDMA_WRITE, &b_), 0);
  EXPECT_EQ(c.Send(0, 1, 0, IBV_WR_RDMA_WRITE, &b_), ENOMEM);
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

TEST_F(FakeWireTest, NoReceiveAndFiniteRetriesIsRnr) {
  ASSERT_TRUE(a_.ToInit().ok());
  ASSERT_TRUE(b_.ToInit().ok());
  ASSERT_TRUE(a_.ToRtr(b_).ok());
  ASSERT_TRUE(b_.ToRtr(a_).ok());
  ASSERT_TRUE(a_.ToRts(3).ok());
  ASSERT_EQ(a_.Send(1, 4), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(a_.State(), IBV_QPS_ERR);
  EXPECT_EQ(b_.State(), IBV_QPS_RTR);
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

TEST_F(FakeWireTest, AccessIsChecked) {
  Connect();
  ASSERT_EQ(a_.Send(1, 4, 0, IBV_WR_RDMA_WRITE, &b_, 8190), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(a_.State(), IBV_QPS_ERR);
  EXPECT_EQ(b_.State(), IBV_QPS_ERR);
  ibv_async_event event{};
  ASSERT_TRUE(*b_.verbs.GetAsyncEvent(b_.context.get(), &event));
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  b_.verbs.AckAsyncEvent(&event);
}

TEST_F(FakeWireTest, LocalKeyIsChecked) {
  Connect();
  a_.mr.reset();
  a_.mr = *rdma::RegMr(a_.verbs, a_.pd, a_.buffer, 2, 0);
  ASSERT_EQ(a_.Send(1, 4), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(FakeWireTest, TooShortAReceiveBreaksBothEnds) {
  Connect();
  ASSERT_EQ(b_.Receive(5, 0, 2), 0);
  ASSERT_EQ(a_.Send(1, 4), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(b_.PollOne().status, IBV_WC_LOC_LEN_ERR);
}

TEST_F(FakeWireTest, ErrorFlushesWhatIsPosted) {
  Connect();
  a_.verbs.HoldWire();
  ASSERT_EQ(a_.Send(1, 4, 0), 0);
  ASSERT_EQ(a_.Receive(2, 0, 4), 0);
  ASSERT_TRUE(a_.To(IBV_QPS_ERR).ok());
  ASSERT_EQ(a_.Send(3, 4, 0), 0);
  const auto completions = a_.Poll();
  ASSERT_EQ(completions.size(), 3u);
  for (const ibv_wc& wc : completions)
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
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

TEST_F(FakeWireTest, OverrunLosesCompletionsAndRaisesCqErr) {
  Connect();
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(a_.Send(1, 1, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE, &b_), 0);
  EXPECT_EQ(a_.Poll().size(), 127u);  // asked 64
  EXPECT_EQ(a_.State(), IBV_QPS_RTS);
  ibv_async_event event{};
  ASSERT_TRUE(*a_.verbs.GetAsyncEvent(a_.context.get(), &event));
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, a_.cq.get());
  a_.verbs.AckAsyncEvent(&event);
}

TEST_F(FakeWireTest, ArmedQueueNotifiesOnce) {
  Connect();
  const auto write = [&] {
    ASSERT_EQ(a_.Send(1, 1, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE, &b_), 0);
  };
  pollfd readable{.fd = a_.channel->fd, .events = POLLIN};
  write();
  EXPECT_EQ(poll(&readable, 1, 0), 0);
  ASSERT_EQ(a_.verbs.ReqNotifyCq(a_.cq.get(), false), 0);
  write();
  write();
  EXPECT_EQ(poll(&readable, 1, 0), 1);
  EXPECT_EQ(*a_.verbs.GetCqEvent(a_.channel.get()), a_.cq.get());
  EXPECT_EQ(*a_.verbs.GetCqEvent(a_.channel.get()), nullptr);
  EXPECT_EQ(poll(&readable, 1, 0), 0);
  a_.verbs.AckCqEvents(a_.cq.get(), 1);
}

TEST_F(FakeWireTest, SolicitedOnlyWaitsForASolicitedReceive) {
  Connect();
  ASSERT_EQ(b_.verbs.ReqNotifyCq(b_.cq.get(), true), 0);
  ASSERT_EQ(b_.Receive(1, 0, 8), 0);
  ASSERT_EQ(b_.Receive(2, 0, 8), 0);
  ASSERT_EQ(a_.Send(1, 4), 0);
  EXPECT_EQ(*b_.verbs.GetCqEvent(b_.channel.get()), nullptr);
  ASSERT_EQ(a_.Send(2, 4, IBV_SEND_SOLICITED), 0);
  EXPECT_EQ(*b_.verbs.GetCqEvent(b_.channel.get()), b_.cq.get());
  b_.verbs.AckCqEvents(b_.cq.get(), 1);
}

TEST_F(FakeWireTest, ReadNeedsItsDepthAtBothEnds) {
  ASSERT_TRUE(a_.ToInit().ok());
  ASSERT_TRUE(b_.ToInit().ok());
  ASSERT_TRUE(a_.ToRtr(b_).ok());
  ASSERT_TRUE(b_.ToRtr(a_, 100, 0).ok());
  ASSERT_TRUE(a_.ToRts().ok());
  ASSERT_EQ(a_.Send(1, 4, 0, IBV_WR_RDMA_READ, &b_), 0);
  EXPECT_EQ(a_.PollOne().status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(FakeWireTest, RoceNeedsAGlobalRouteHeader) {
  ASSERT_TRUE(a_.ToInit().ok());
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr.port_num = 1;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                   IBV_QP_MIN_RNR_TIMER;
  EXPECT_EQ(rdma::ErrnoOf(a_.verbs.ModifyQp(a_.qp.get(), &attr, mask)), EINVAL);
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.sgid_index = 5;  // empty
  EXPECT_EQ(rdma::ErrnoOf(a_.verbs.ModifyQp(a_.qp.get(), &attr, mask)), EINVAL);
  attr.ah_attr.grh.sgid_index = 1;
  EXPECT_TRUE(a_.verbs.ModifyQp(a_.qp.get(), &attr, mask).ok());
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
