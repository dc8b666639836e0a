// SPDX-License-Identifier: Apache-2.0
//
// What the seam's subject does with completion queues that grow, shared receive
// queues, and queue pairs that declare what they will post.
#include "tests/unit/rdma/verbs_contract.h"

namespace purser::rdma {
namespace {

TEST_F(VerbsContractTest, AQueuePairThatDeclaresItsOperationsPostsThem) {
  ibv_qp_init_attr attr = Attr();
  End a = MakeEnd(), b = MakeEnd();
  auto qp = CreateQp(*verbs_, pd_, attr,
                     IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE);
  ASSERT_TRUE(qp.ok()) << qp.status();
  a.qp = *std::move(qp);
  Connect(a, b);
  ASSERT_EQ(Receive(b), 0);
  a.buffer[0] = 77;
  ASSERT_EQ(Send(a, {.wr_id = 1}), 0);
  EXPECT_EQ(AwaitStatus(b, 2), IBV_WC_SUCCESS);
  EXPECT_EQ(b.buffer[8192], 77);
  ASSERT_EQ(Send(a, {.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
  EXPECT_EQ(AwaitStatus(a, 3), IBV_WC_SUCCESS);
  EXPECT_EQ(b.buffer[0], 77);
}

TEST_F(VerbsContractTest, UnknownSendOperationsAreNotSupported) {
  ibv_qp_init_attr attr = Attr();
  EXPECT_EQ(ErrnoOf(CreateQp(*verbs_, pd_, attr, IBV_QP_EX_WITH_TSO).status()),
            EOPNOTSUPP);
}

TEST_F(VerbsContractTest, ACompletionQueueGrowsWithWhatIsInIt) {
  auto grown = *CreateCq(*verbs_, context_, 7, nullptr, channel_);
  End a = MakeEnd(), b = MakeEnd();
  ibv_qp_init_attr attr = Attr();
  attr.send_cq = grown.get();
  a.qp = *CreateQp(*verbs_, pd_, attr);
  Connect(a, b);
  const auto write = [&](uint64_t wr_id) {
    ASSERT_EQ(
        Send(a, {.wr_id = wr_id, .opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
  };
  for (uint64_t i = 0; i < 7; ++i) write(i);
  // Of the last: what was sent before it has completed as well.
  ASSERT_EQ(Receive(b), 0);
  ASSERT_EQ(Send(a, {.wr_id = 7, .flags = 0}), 0);
  ASSERT_EQ(AwaitStatus(b, 2), IBV_WC_SUCCESS);
  EXPECT_EQ(ErrnoOf(verbs_->ResizeCq(grown.get(), 6)), EINVAL)
      << "less than is in it";
  EXPECT_EQ(ErrnoOf(verbs_->ResizeCq(grown.get(), 32768)), EINVAL);
  EXPECT_EQ(grown->cqe, 7);
  ASSERT_EQ(ErrnoOf(verbs_->ResizeCq(grown.get(), 20)), 0);
  EXPECT_EQ(grown->cqe, 31);
  for (uint64_t i = 7; i < 20; ++i) write(i);
  ibv_wc completions[32];
  uint64_t polled = 0;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (polled < 20 && std::chrono::steady_clock::now() < deadline) {
    const int count = verbs_->PollCq(grown.get(), 32, completions);
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) EXPECT_EQ(completions[i].wr_id, polled++);
  }
  EXPECT_EQ(polled, 20u);
}

TEST_F(VerbsContractTest, ARequestedNotificationSurvivesTheGrowth) {
  auto grown = *CreateCq(*verbs_, context_, 7, nullptr, channel_);
  End a = MakeEnd(), b = MakeEnd();
  ibv_qp_init_attr attr = Attr();
  attr.send_cq = grown.get();
  a.qp = *CreateQp(*verbs_, pd_, attr);
  Connect(a, b);
  ASSERT_EQ(verbs_->ReqNotifyCq(grown.get(), false), 0);
  ASSERT_EQ(ErrnoOf(verbs_->ResizeCq(grown.get(), 31)), 0);
  ASSERT_EQ(Send(a, {.opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
  EXPECT_TRUE(Readable(channel_->fd, 10000));
  EXPECT_EQ(*verbs_->GetCqEvent(channel_.get()), grown.get());
  verbs_->AckCqEvents(grown.get(), 1);
}

// Two queue pairs with receives from one queue.
TEST_F(VerbsContractTest, ASharedReceiveQueueServesAllItsQueuePairs) {
  ibv_srq_init_attr srq_attr{.attr = {.max_wr = 4, .max_sge = 1}};
  auto srq = CreateSrq(*verbs_, pd_, srq_attr);
  ASSERT_TRUE(srq.ok()) << srq.status();
  EXPECT_GE(srq_attr.attr.max_wr, 4u);
  End senders[2] = {MakeEnd(), MakeEnd()}, receivers[2];
  for (int i = 0; i < 2; ++i) {
    receivers[i] = MakeEnd();
    ibv_qp_init_attr attr = Attr();
    attr.srq = srq->get();
    attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    receivers[i].qp = *CreateQp(*verbs_, pd_, attr);
    Connect(senders[i], receivers[i]);
  }
  const auto receive = [&](uint64_t wr_id) {
    ibv_sge sge = Sge(receivers[0], 1024 * wr_id, 64);
    ibv_recv_wr wr{.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return verbs_->PostSrqRecv(srq->get(), &wr, &bad);
  };
  int posted = 0;
  while (receive(1) == 0) ++posted;
  EXPECT_EQ(posted, 7) << "a power of two less one";
  EXPECT_EQ(receive(1), ENOMEM);
  for (int i = 0; i < 2; ++i) {
    senders[i].buffer[0] = static_cast<uint8_t>(i + 1);
    ASSERT_EQ(Send(senders[i], {.wr_id = 5}), 0);
    EXPECT_EQ(AwaitStatus(senders[i], 5), IBV_WC_SUCCESS);
    EXPECT_EQ(AwaitStatus(receivers[i], 1), IBV_WC_SUCCESS);
    EXPECT_EQ(receivers[0].buffer[1024], i + 1);
  }
  EXPECT_EQ(Receive(receivers[0]), EINVAL) << "it has no queue of its own";
  EXPECT_EQ(receive(1), 0) << "slots are free again";
  EXPECT_EQ(ErrnoOf(verbs_->DestroySrq(srq->get())), EBUSY);
}

TEST_F(VerbsContractTest, AnErrorLeavesTheSharedReceiveQueueAlone) {
  ibv_srq_init_attr srq_attr{.attr = {.max_wr = 4, .max_sge = 1}};
  auto srq = *CreateSrq(*verbs_, pd_, srq_attr);
  End end = MakeEnd();
  ibv_qp_init_attr attr = Attr();
  attr.srq = srq.get();
  end.qp = *CreateQp(*verbs_, pd_, attr);
  ibv_sge sge = Sge(end, 0, 64);
  ibv_recv_wr wr{.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(verbs_->PostSrqRecv(srq.get(), &wr, &bad), 0);
  Bring(end.qp, IBV_QPS_ERR);
  Poll();
  EXPECT_TRUE(polled_.empty());
  ASSERT_EQ(ErrnoOf(Destroy(end.qp)), 0);
}

}  // namespace
}  // namespace purser::rdma
