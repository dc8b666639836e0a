// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include "rdma/queue_pair_states.h"
#include "tests/unit/rdma/verbs_contract.h"

namespace purser::rdma {
namespace {

// ---- Posting ----

TEST_F(VerbsContractTest, ReceivesArePostedFromInitOn) {
  for (const ibv_qp_state state :
       {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    End end = MakeEnd();
    Bring(end.qp, state);
    EXPECT_EQ(Receive(end), state == IBV_QPS_RESET ? EINVAL : 0)
        << StateName(state);
  }
}

// Refused without a culprit, and yet kept.
TEST_F(VerbsContractTest, SendsPostedBeforeRtsAreSentAtRts) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    End a = MakeEnd(), b = MakeEnd();
    const auto advance_a = [&](ibv_qp_state from, ibv_qp_state to) {
      for (int next = from + 1; next <= to; ++next)
        ASSERT_EQ(Advance(a.qp, static_cast<ibv_qp_state>(next), b.qp->qp_num),
                  0);
    };
    advance_a(IBV_QPS_RESET, state);
    ibv_sge sge = Sge(a, 0, 8);
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = &wr;
    EXPECT_EQ(verbs_->PostSend(a.qp.get(), &wr, &bad), EINVAL);
    EXPECT_EQ(bad, nullptr);
    for (int i = 0; i < 40; ++i)
      EXPECT_EQ(verbs_->PostSend(a.qp.get(), &wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);  // the ring is full

    ASSERT_EQ(Advance(b.qp, IBV_QPS_INIT), 0);
    for (int i = 0; i < 31; ++i) ASSERT_EQ(Receive(b), 0);
    ASSERT_EQ(Advance(b.qp, IBV_QPS_RTR, a.qp->qp_num), 0);
    advance_a(state, IBV_QPS_RTS);
    (void)Send(a, {});  // soft-RoCE wakes up with the next post
    for (int i = 0; i < 31; ++i) EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_SUCCESS);
  }
}

TEST_F(VerbsContractTest, FullQueueIsEnomemAtTheExactRequest) {
  End end = MakeEnd();
  Bring(end.qp, IBV_QPS_INIT);
  std::vector<ibv_recv_wr> receives(40);
  for (size_t i = 0; i + 1 < receives.size(); ++i)
    receives[i].next = &receives[i + 1];
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(verbs_->PostRecv(end.qp.get(), receives.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &receives[31]);  // asked 16, the ring takes 31

  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);  // no receive: the first send waits
  std::vector<ibv_send_wr> sends(40);
  ibv_sge sge = Sge(a, 0, 8);
  for (size_t i = 0; i < sends.size(); ++i) {
    sends[i].opcode = IBV_WR_SEND;
    sends[i].sg_list = &sge;
    sends[i].num_sge = 1;
    if (i + 1 < sends.size()) sends[i].next = &sends[i + 1];
  }
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(verbs_->PostSend(a.qp.get(), sends.data(), &bad_send), ENOMEM);
  EXPECT_EQ(bad_send, &sends[31]);
}

TEST_F(VerbsContractTest, MalformedRequestsAreRefused) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ibv_sge sges[4] = {Sge(a, 0, 8), Sge(a, 8, 8), Sge(a, 16, 8), Sge(a, 24, 8)};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.sg_list = sges;
  wr.num_sge = 3;  // the queue pair has 2
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(verbs_->PostSend(a.qp.get(), &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_INLINE;
  sges[0].length = 33;  // it takes 32
  EXPECT_EQ(verbs_->PostSend(a.qp.get(), &wr, &bad), EINVAL);
  ibv_recv_wr receive{};
  receive.sg_list = sges;
  receive.num_sge = 3;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(verbs_->PostRecv(a.qp.get(), &receive, &bad_receive), EINVAL);
  EXPECT_EQ(bad_receive, &receive);
}

// ---- Data ----

TEST_F(VerbsContractTest, SendFillsTheReceive) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b), 0);
  std::memcpy(a.buffer.data(), "hello", 6);
  ASSERT_EQ(Send(a, {.length = 6}), 0);
  const ibv_wc sent = Await(a, 1);
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);
  EXPECT_EQ(sent.byte_len, 6u);
  EXPECT_EQ(sent.wc_flags, 0u);
  const ibv_wc received = Await(b, 2);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.byte_len, 6u);
  EXPECT_EQ(received.wc_flags, unsigned{IBV_WC_GRH});
  EXPECT_EQ(std::memcmp(b.buffer.data() + 8192, "hello", 6), 0);
}

TEST_F(VerbsContractTest, ImmediateDataArrives) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b, 2), 0);
  ASSERT_EQ(Receive(b, 3), 0);
  ASSERT_EQ(Send(a, {.opcode = IBV_WR_SEND_WITH_IMM}), 0);
  ibv_wc received = Await(b, 2);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.wc_flags, unsigned{IBV_WC_GRH | IBV_WC_WITH_IMM});
  EXPECT_EQ(received.imm_data, 0x04030201u);
  ASSERT_EQ(Send(a, {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .peer = &b}), 0);
  received = Await(b, 3);
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.wc_flags, unsigned{IBV_WC_GRH | IBV_WC_WITH_IMM});
  EXPECT_EQ(received.imm_data, 0x04030201u);
  EXPECT_EQ(received.byte_len, 8u);
}

TEST_F(VerbsContractTest, WriteAndReadMoveData) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  for (size_t i = 0; i < 5000; ++i) a.buffer[i] = static_cast<uint8_t>(i * 7);
  ASSERT_EQ(Send(a, {.wr_id = 10,
                     .length = 5000,
                     .opcode = IBV_WR_RDMA_WRITE,
                     .peer = &b,
                     .remote_offset = 100}),
            0);
  const ibv_wc written = Await(a, 10);
  EXPECT_EQ(written.status, IBV_WC_SUCCESS);
  EXPECT_EQ(written.opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(std::memcmp(b.buffer.data() + 100, a.buffer.data(), 5000), 0);
  ASSERT_EQ(Send(a, {.wr_id = 11,
                     .length = 5000,
                     .offset = 8000,
                     .opcode = IBV_WR_RDMA_READ,
                     .peer = &b,
                     .remote_offset = 100}),
            0);
  const ibv_wc read = Await(a, 11);
  EXPECT_EQ(read.status, IBV_WC_SUCCESS);
  EXPECT_EQ(read.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(read.byte_len, 5000u);
  EXPECT_EQ(std::memcmp(a.buffer.data() + 8000, a.buffer.data(), 5000), 0);
}

TEST_F(VerbsContractTest, InlineDataNeedsNoRegion) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b), 0);
  a.mr.reset();
  a.mr = *RegMr(*verbs_, pd_, a.buffer.data(), 1, 0);
  std::memcpy(a.buffer.data(), "inline", 7);
  ASSERT_EQ(
      Send(a, {.length = 7, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}), 0);
  EXPECT_EQ(AwaitStatus(b, 2), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(b.buffer.data() + 8192, "inline", 7), 0);
}

TEST_F(VerbsContractTest, UnsignalledSuccessLeavesNoCompletion) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(
      Send(a,
           {.wr_id = 5, .opcode = IBV_WR_RDMA_WRITE, .flags = 0, .peer = &b}),
      0);
  ASSERT_EQ(Send(a, {.wr_id = 6, .opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
  EXPECT_EQ(AwaitStatus(a, 6), IBV_WC_SUCCESS);
  EXPECT_TRUE(polled_.empty());
}

TEST_F(VerbsContractTest, UnreliableConnection) {
  End a = MakeEnd(IBV_QPT_UC), b = MakeEnd(IBV_QPT_UC);
  Connect(a, b);
  ASSERT_EQ(Receive(b), 0);
  std::memcpy(a.buffer.data(), "unsure", 7);
  ASSERT_EQ(Send(a, {.length = 7}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_SUCCESS);
  EXPECT_EQ(AwaitStatus(b, 2), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(b.buffer.data() + 8192, "unsure", 7), 0);
}

TEST_F(VerbsContractTest, ASendWaitsForAReceive) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Send(a, {}), 0);
  ASSERT_EQ(Receive(b), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_SUCCESS);
}

// ---- Errors on the wire ----

TEST_F(VerbsContractTest, NoReceiveAndFiniteRetries) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b, {.rnr_retry = 1});
  ASSERT_EQ(Send(a, {}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(AwaitState(a, IBV_QPS_ERR), IBV_QPS_ERR);
  EXPECT_EQ(State(b), IBV_QPS_RTS);
}

TEST_F(VerbsContractTest, NobodyAnswers) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  b.qp.reset();
  ASSERT_EQ(Send(a, {}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(VerbsContractTest, PeerInErrorDoesNotAnswer) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Advance(b.qp, IBV_QPS_ERR), 0);
  ASSERT_EQ(Send(a, {}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(VerbsContractTest, SequenceNumbersMustMatch) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b, {.psn = 5000}, {.psn = 100});
  ASSERT_EQ(Receive(b), 0);
  ASSERT_EQ(Send(a, {}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(VerbsContractTest, RemoteAccessIsChecked) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    End a = MakeEnd(), b = MakeEnd();
    Connect(a, b);
    ASSERT_EQ(Send(a, {.opcode = opcode, .peer = &b, .remote_offset = 16380}),
              0);
    EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(AwaitState(a, IBV_QPS_ERR), IBV_QPS_ERR);
    EXPECT_EQ(AwaitState(b, IBV_QPS_ERR), IBV_QPS_ERR);
  }
}

TEST_F(VerbsContractTest, QueuePairAccessFlagsAreChecked) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b, {}, {.access = IBV_ACCESS_REMOTE_READ});
  ASSERT_EQ(Send(a, {.opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(VerbsContractTest, LocalKeyIsChecked) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b), 0);
  ASSERT_EQ(Send(a, {.length = 16, .offset = 16380}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(AwaitState(a, IBV_QPS_ERR), IBV_QPS_ERR);
}

TEST_F(VerbsContractTest, TooShortAReceive) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b, 2, 8192, 4), 0);
  ASSERT_EQ(Send(a, {.length = 100}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_REM_OP_ERR);
  EXPECT_EQ(AwaitStatus(b, 2), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(VerbsContractTest, ErrorFlushesWhatIsPosted) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Send(a, {.wr_id = 1, .flags = 0}), 0);  // waits for a receive
  ASSERT_EQ(Receive(a, 2), 0);
  ASSERT_EQ(Advance(a.qp, IBV_QPS_ERR), 0);
  ASSERT_EQ(Send(a, {.wr_id = 3, .flags = 0}), 0);
  for (const uint64_t wr_id : {1, 2, 3})
    EXPECT_EQ(AwaitStatus(a, wr_id), IBV_WC_WR_FLUSH_ERR) << wr_id;
}

TEST_F(VerbsContractTest, ResetDropsWhatIsPostedAndConnectsAgain) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Send(a, {.wr_id = 1}), 0);
  ASSERT_EQ(Receive(a, 2), 0);
  ASSERT_EQ(Advance(a.qp, IBV_QPS_RESET), 0);
  ASSERT_EQ(Advance(b.qp, IBV_QPS_RESET), 0);
  Connect(a, b);
  ASSERT_EQ(Receive(b, 4), 0);
  ASSERT_EQ(Send(a, {.wr_id = 3}), 0);
  EXPECT_EQ(AwaitStatus(a, 3), IBV_WC_SUCCESS);
  EXPECT_EQ(AwaitStatus(b, 4), IBV_WC_SUCCESS);
  Poll();
  EXPECT_TRUE(polled_.empty());
}

TEST_F(VerbsContractTest, ReadNeedsDepthAtTheResponder) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b, {}, {.max_dest_rd_atomic = 0});
  ASSERT_EQ(Send(a, {.opcode = IBV_WR_RDMA_READ, .peer = &b}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(VerbsContractTest, ReceiveWhoseRegionIsGone) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b), 0);
  b.mr.reset();
  ASSERT_EQ(Send(a, {}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_REM_OP_ERR);
  EXPECT_EQ(AwaitStatus(b, 2), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(VerbsContractTest, OperationThatTheQueuePairCannot) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Send(a, {.opcode = IBV_WR_TSO}), 0);
  EXPECT_EQ(AwaitStatus(a, 1), IBV_WC_LOC_QP_OP_ERR);
  End c = MakeEnd(IBV_QPT_UC), d = MakeEnd(IBV_QPT_UC);
  Connect(c, d);
  ASSERT_EQ(Send(c, {.opcode = IBV_WR_RDMA_READ, .peer = &d}), 0);
  EXPECT_EQ(AwaitStatus(c, 1), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(VerbsContractTest, CompletionsOutliveTheirQueuePair) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b), 0);
  ASSERT_EQ(Send(a, {}), 0);
  EXPECT_EQ(AwaitStatus(b, 2), IBV_WC_SUCCESS);
  ASSERT_EQ(Send(a, {.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  ASSERT_EQ(verbs_->ReqNotifyCq(cq_.get(), false), 0);
  ASSERT_EQ(Send(a, {.wr_id = 4, .opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
  ASSERT_TRUE(Readable(channel_->fd, 10000));
  EXPECT_EQ(*verbs_->GetCqEvent(channel_.get()), cq_.get());
  verbs_->AckCqEvents(cq_.get(), 1);
  const uint32_t qp_num = a.qp->qp_num;
  a.qp.reset();
  while (polled_.empty() && std::chrono::steady_clock::now() < deadline) Poll();
  ASSERT_FALSE(polled_.empty());
  EXPECT_EQ(polled_.front().qp_num, qp_num);
}

TEST_F(VerbsContractTest, DrainingRaisesItsEvent) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Advance(a.qp, IBV_QPS_SQD), 0);
  ASSERT_TRUE(Readable(context_->async_fd, 10000));
  ibv_async_event event{};
  ASSERT_TRUE(*verbs_->GetAsyncEvent(context_.get(), &event));
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(event.element.qp, a.qp.get());
  verbs_->AckAsyncEvent(&event);
}

TEST_F(VerbsContractTest, ErrorsRaiseNoEvent) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(
      Send(a,
           {.opcode = IBV_WR_RDMA_WRITE, .peer = &b, .remote_offset = 16380}),
      0);
  const ibv_wc wc = Await(a, 1);
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wc.byte_len, 0u);
  EXPECT_EQ(AwaitState(a, IBV_QPS_ERR), IBV_QPS_ERR);
  EXPECT_EQ(a.qp->state, IBV_QPS_ERR);  // since it was queried
  EXPECT_EQ(b.qp->state, IBV_QPS_RTS);  // since it was not
  EXPECT_FALSE(Readable(context_->async_fd, 0));
}

// ---- Completion queues ----

TEST_F(VerbsContractTest, OverrunLosesCompletionsAndRaisesCqErr) {
  auto small = *CreateCq(*verbs_, context_, 4, nullptr, channel_);
  End a = MakeEnd(), b = MakeEnd();
  ibv_qp_init_attr attr = Attr();
  attr.send_cq = small.get();
  a.qp = *CreateQp(*verbs_, pd_, attr);
  Connect(a, b);
  for (uint64_t i = 0; i < 31; ++i)
    ASSERT_EQ(Send(a, {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .peer = &b}),
              0);
  ASSERT_TRUE(Readable(context_->async_fd, 10000));
  ibv_async_event event{};
  ASSERT_TRUE(*verbs_->GetAsyncEvent(context_.get(), &event));
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, small.get());
  verbs_->AckAsyncEvent(&event);
  ibv_wc completions[32];
  EXPECT_EQ(verbs_->PollCq(small.get(), 32, completions), 7);
  EXPECT_EQ(State(a), IBV_QPS_RTS);
}

TEST_F(VerbsContractTest, ArmedQueueNotifiesOnce) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  const auto write = [&](uint64_t wr_id) {
    ASSERT_EQ(
        Send(a, {.wr_id = wr_id, .opcode = IBV_WR_RDMA_WRITE, .peer = &b}), 0);
    EXPECT_EQ(AwaitStatus(a, wr_id), IBV_WC_SUCCESS);
  };
  write(1);
  EXPECT_FALSE(Readable(channel_->fd, 0));
  ASSERT_EQ(verbs_->ReqNotifyCq(cq_.get(), false), 0);
  write(2);
  write(3);
  EXPECT_TRUE(Readable(channel_->fd, 10000));
  EXPECT_EQ(*verbs_->GetCqEvent(channel_.get()), cq_.get());
  EXPECT_EQ(*verbs_->GetCqEvent(channel_.get()), nullptr);
  verbs_->AckCqEvents(cq_.get(), 1);
}

TEST_F(VerbsContractTest, SolicitedOnly) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ASSERT_EQ(Receive(b, 2), 0);
  ASSERT_EQ(Receive(b, 3), 0);
  ASSERT_EQ(verbs_->ReqNotifyCq(cq_.get(), true), 0);
  ASSERT_EQ(Send(a, {.wr_id = 1, .flags = 0}), 0);
  EXPECT_EQ(AwaitStatus(b, 2), IBV_WC_SUCCESS);
  EXPECT_FALSE(Readable(channel_->fd, 0));
  ASSERT_EQ(Send(a, {.wr_id = 2, .flags = IBV_SEND_SOLICITED}), 0);
  EXPECT_EQ(AwaitStatus(b, 3), IBV_WC_SUCCESS);
  EXPECT_TRUE(Readable(channel_->fd, 10000));
  EXPECT_EQ(*verbs_->GetCqEvent(channel_.get()), cq_.get());
  verbs_->AckCqEvents(cq_.get(), 1);
}

}  // namespace
}  // namespace purser::rdma
