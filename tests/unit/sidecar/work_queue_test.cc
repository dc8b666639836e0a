// SPDX-License-Identifier: Apache-2.0
#include "sidecar/work_queue.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sidecar/device_events.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

// Two connected RC queue pairs of one device: `local` posts through a
// WorkQueue, `remote` is plain.
class WorkQueueTest : public ::testing::TestWithParam<const char*> {
 protected:
  struct End {
    std::shared_ptr<QueuePairEvents> events;
    rdma::CompletionQueue cq;
    rdma::QueuePair qp;
    std::unique_ptr<WorkQueue> work_queue;
  };

  void SetUp() override {
    verbs_.AddDevice(std::string(device_name()) == "rxe0"
                         ? fakes::RxeDevice()
                         : fakes::Mlx5Device());
    context_ = rdma::OpenDevice(verbs_, device_name()).value();
    pd_ = rdma::AllocPd(verbs_, context_).value();
    device_events_ =
        DeviceEvents::Start(verbs_, context_, device_name(), [] {}).value();
    mr_ = rdma::RegMr(verbs_, pd_, buffer_.data(), buffer_.size(),
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ)
              .value();
    local_ = MakeEnd(100, 100, 255);
    remote_ = MakeEnd(100, 100, 255);
  }

  virtual const char* device_name() const { return "rxe0"; }

  End MakeEnd(uint32_t send_wr, uint32_t recv_wr, int cqe) {
    End end;
    end.events = std::make_shared<QueuePairEvents>();
    end.cq = rdma::CreateCq(verbs_, context_, cqe, end.events.get(),
                            device_events_->channel())
                 .value();
    ibv_qp_init_attr init{.qp_context = end.events.get(),
                          .send_cq = end.cq.get(),
                          .recv_cq = end.cq.get(),
                          .cap = {.max_send_wr = send_wr,
                                  .max_recv_wr = recv_wr,
                                  .max_send_sge = 2,
                                  .max_recv_sge = 2},
                          .qp_type = IBV_QPT_RC};
    end.qp = rdma::CreateQp(verbs_, pd_, init).value();
    // Soft-RoCE writes back 100 and takes 127.
    end.work_queue = std::make_unique<WorkQueue>(
        verbs_, end.qp.get(), end.cq.get(), end.events,
        WorkQueue::Capacity{.send_slots = 127,
                            .recv_slots = 127,
                            .cqe = static_cast<uint32_t>(end.cq->cqe)},
        counters_);
    return end;
  }

  void Modify(End& end, ibv_qp_attr attr, int mask) {
    ASSERT_TRUE(verbs_.ModifyQp(end.qp.get(), &attr, mask | IBV_QP_STATE).ok());
    end.work_queue->StateChanged(attr.qp_state);
  }

  void Connect(End& end, const End& peer) {
    Modify(end,
           {.qp_state = IBV_QPS_INIT,
            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
            .port_num = 1},
           IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    ibv_qp_attr rtr{.qp_state = IBV_QPS_RTR,
                    .path_mtu = IBV_MTU_1024,
                    .dest_qp_num = peer.qp->qp_num,
                    .max_dest_rd_atomic = 1,
                    .min_rnr_timer = 12};
    rtr.ah_attr.is_global = 1;
    rtr.ah_attr.port_num = 1;
    rtr.ah_attr.grh.sgid_index = gid_index_;
    rtr.ah_attr.grh.dgid = fakes::Ipv4Gid("192.0.2.1");
    Modify(end, rtr,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    Modify(end,
           {.qp_state = IBV_QPS_RTS,
            .max_rd_atomic = 1,
            .timeout = 14,
            .retry_cnt = 7,
            .rnr_retry = 7},
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }

  void ConnectBoth() {
    Connect(local_, remote_);
    Connect(remote_, local_);
  }

  ibv_sge Sge(size_t offset, uint32_t length) {
    return {reinterpret_cast<uint64_t>(buffer_.data()) + offset, length,
            mr_->lkey};
  }

  // RDMA writes of nothing: they need no receive.
  std::vector<ibv_send_wr> Writes(size_t count, uint64_t first_id = 0) {
    std::vector<ibv_send_wr> requests(count);
    for (size_t i = 0; i < count; ++i) {
      requests[i].wr_id = first_id + i;
      requests[i].opcode = IBV_WR_RDMA_WRITE;
    }
    return requests;
  }
  std::vector<ibv_recv_wr> Receives(size_t count, uint64_t first_id = 0) {
    std::vector<ibv_recv_wr> requests(count);
    for (size_t i = 0; i < count; ++i) requests[i].wr_id = first_id + i;
    return requests;
  }

  uint64_t PostFailures(const std::string& operation,
                        const std::string& error) {
    return CountOf(counters_.post_failures, operation, error);
  }

  fakes::FakeVerbs verbs_;
  Counters counters_;
  int gid_index_ = 1;
  std::array<uint8_t, 4096> buffer_{};
  rdma::Context context_;
  rdma::ProtectionDomain pd_;
  std::unique_ptr<DeviceEvents> device_events_;
  rdma::MemoryRegion mr_;
  End local_, remote_;
};

TEST_F(WorkQueueTest, DataMovesAndEachSideGetsItsOwnIdBack) {
  ConnectBoth();
  std::memcpy(buffer_.data(), "purser", 6);
  ibv_sge from = Sge(0, 6), to = Sge(1024, 64);
  std::vector<ibv_recv_wr> receives = Receives(1, UINT64_MAX);
  receives[0].sg_list = &to;
  receives[0].num_sge = 1;
  EXPECT_EQ(remote_.work_queue->PostReceive(receives).posted, 1u);
  std::vector<ibv_send_wr> sends = Writes(1, 42);
  sends[0].opcode = IBV_WR_SEND;
  sends[0].sg_list = &from;
  sends[0].num_sge = 1;
  EXPECT_EQ(local_.work_queue->PostSend(sends).posted, 1u);

  const auto sent = local_.work_queue->Poll(16);
  ASSERT_TRUE(sent.ok()) << sent.status();
  ASSERT_EQ(sent->size(), 1u);
  EXPECT_EQ(sent->front().wc.wr_id, 42u);
  EXPECT_FALSE(sent->front().receive);
  const auto received = remote_.work_queue->Poll(16);
  ASSERT_TRUE(received.ok());
  ASSERT_EQ(received->size(), 1u);
  EXPECT_EQ(received->front().wc.wr_id, UINT64_MAX);
  EXPECT_TRUE(received->front().receive);
  EXPECT_EQ(std::memcmp(&buffer_[1024], "purser", 6), 0);

  EXPECT_EQ(CountOf(counters_.posts, std::string("send")), 1u);
  EXPECT_EQ(CountOf(counters_.posts, std::string("receive")), 1u);
  EXPECT_EQ(CountOf(counters_.completions, std::string("SUCCESS")), 2u);
  EXPECT_EQ(local_.work_queue->outstanding_sends(), 0u);
  EXPECT_EQ(remote_.work_queue->outstanding_receives(), 0u);
}

TEST_F(WorkQueueTest, AFullSendQueueIsTheDevicesEnomemWithTheExactRequest) {
  ConnectBoth();
  verbs_.HoldWire();
  std::vector<ibv_send_wr> requests = Writes(130, 1000);
  const PostResult result = local_.work_queue->PostSend(requests);
  EXPECT_EQ(result.posted, 127u);
  EXPECT_EQ(result.error_number, ENOMEM);
  EXPECT_THAT(result.message, HasSubstr("send queue full: it takes 127"));
  EXPECT_THAT(result.message, HasSubstr("127 are posted"));
  EXPECT_EQ(PostFailures("send", "ENOMEM"), 1u);
  EXPECT_EQ(CountOf(counters_.posts, std::string("send")), 127u);
  EXPECT_EQ(local_.work_queue->outstanding_sends(), 127u);
  verbs_.ReleaseWire();
  const auto completions = local_.work_queue->Poll(4096);
  ASSERT_TRUE(completions.ok());
  ASSERT_EQ(completions->size(), 127u);
  EXPECT_EQ(completions->front().wc.wr_id, 1000u);
  EXPECT_EQ(completions->back().wc.wr_id, 1126u);
}

TEST_F(WorkQueueTest, AFullReceiveQueueLikewise) {
  ConnectBoth();
  std::vector<ibv_recv_wr> requests = Receives(128);
  const PostResult result = local_.work_queue->PostReceive(requests);
  EXPECT_EQ(result.posted, 127u);
  EXPECT_EQ(result.error_number, ENOMEM);
  EXPECT_THAT(result.message, HasSubstr("receive queue full"));
  EXPECT_THAT(result.message, HasSubstr("max_recv_wr"));
  EXPECT_EQ(PostFailures("receive", "ENOMEM"), 1u);
}

// Soft-RoCE frees slots without polling, so only this keeps the completion
// queue from overrunning.
TEST_F(WorkQueueTest, APostThatCouldOverrunTheCompletionQueueIsRefused) {
  ConnectBoth();
  uint64_t posted = 0;
  PostResult result;
  while (result.error_number == 0) {
    std::vector<ibv_send_wr> requests = Writes(50, posted);
    result = local_.work_queue->PostSend(requests);
    posted += result.posted;
  }
  EXPECT_EQ(posted, 255u);
  EXPECT_EQ(result.posted, 5u);
  EXPECT_EQ(result.error_number, ENOMEM);
  EXPECT_THAT(result.message, HasSubstr("completions are not polled"));
  EXPECT_THAT(result.message, HasSubstr("takes 255"));
  EXPECT_EQ(PostFailures("send", "ENOMEM"), 1u);
  std::vector<ibv_recv_wr> receives = Receives(1);
  EXPECT_EQ(local_.work_queue->PostReceive(receives).error_number, ENOMEM)
      << "both directions share the completion queue";

  EXPECT_EQ(local_.work_queue->Poll(1)->size(), 1u);
  std::vector<ibv_send_wr> again = Writes(2);
  EXPECT_EQ(local_.work_queue->PostSend(again).posted, 1u);
  EXPECT_EQ(local_.work_queue->Poll(4096)->size(), 255u)
      << "every completion came: nothing overran";
}

TEST_F(WorkQueueTest, TheDevicesErrorIsCountedAndItsRequestNotOutstanding) {
  ConnectBoth();
  std::array<ibv_sge, 17> too_many{};
  std::vector<ibv_send_wr> requests = Writes(3);
  requests[1].sg_list = too_many.data();
  requests[1].num_sge = 17;
  const PostResult result = local_.work_queue->PostSend(requests);
  EXPECT_EQ(result.posted, 1u);
  EXPECT_EQ(result.error_number, EINVAL);
  EXPECT_THAT(result.message, HasSubstr("scatter/gather"));
  EXPECT_EQ(PostFailures("send", "EINVAL"), 1u);
  EXPECT_EQ(local_.work_queue->Poll(16)->size(), 1u);
  EXPECT_EQ(local_.work_queue->outstanding_sends(), 0u);

  verbs_.FailNext("post_recv", EIO);
  std::vector<ibv_recv_wr> receives = Receives(2);
  const PostResult failed = local_.work_queue->PostReceive(receives);
  EXPECT_EQ(failed.posted, 0u);
  EXPECT_EQ(failed.error_number, EIO);
  EXPECT_EQ(PostFailures("receive", "EIO"), 1u);
  EXPECT_EQ(local_.work_queue->outstanding_receives(), 0u);
}

TEST_F(WorkQueueTest, PostsThatTheStateDoesNotTakeAreRefusedWithTheState) {
  std::vector<ibv_recv_wr> receives = Receives(1);
  PostResult result = local_.work_queue->PostReceive(receives);
  EXPECT_EQ(result.error_number, EINVAL);
  EXPECT_THAT(result.message, HasSubstr("the queue pair is in RESET"));
  Modify(local_, {.qp_state = IBV_QPS_INIT, .port_num = 1},
         IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(local_.work_queue->PostReceive(receives).posted, 1u);
  std::vector<ibv_send_wr> sends = Writes(1);
  result = local_.work_queue->PostSend(sends);
  EXPECT_EQ(result.error_number, EINVAL);
  EXPECT_THAT(result.message, HasSubstr("sends are taken from RTS on"));
  EXPECT_EQ(verbs_.Calls("post_send"), 0u);
  EXPECT_EQ(PostFailures("send", "EINVAL"), 1u);
  EXPECT_EQ(PostFailures("receive", "EINVAL"), 1u);
}

TEST_F(WorkQueueTest, FlushedRequestsKeepTheirDirection) {
  ConnectBoth();
  verbs_.HoldWire();
  std::vector<ibv_send_wr> sends = Writes(2, 10);
  std::vector<ibv_recv_wr> receives = Receives(3, 20);
  EXPECT_EQ(local_.work_queue->PostSend(sends).posted, 2u);
  EXPECT_EQ(local_.work_queue->PostReceive(receives).posted, 3u);
  Modify(local_, {.qp_state = IBV_QPS_ERR}, 0);
  const auto flushed = local_.work_queue->Poll(16);
  ASSERT_TRUE(flushed.ok());
  ASSERT_EQ(flushed->size(), 5u);
  int flushed_receives = 0;
  for (const Completion& completion : *flushed) {
    EXPECT_EQ(completion.wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(completion.receive, completion.wc.wr_id >= 20);
    flushed_receives += completion.receive ? 1 : 0;
  }
  EXPECT_EQ(flushed_receives, 3);
  EXPECT_EQ(CountOf(counters_.completions, std::string("WR_FLUSH_ERR")), 5u);
  EXPECT_EQ(CountOf(counters_.completions, std::string("SUCCESS")), 0u);
}

TEST_F(WorkQueueTest, ResetDropsWhatIsOutstandingAndWhatWasNotPolled) {
  ConnectBoth();
  std::vector<ibv_send_wr> completed = Writes(2, 10);
  EXPECT_EQ(local_.work_queue->PostSend(completed).posted, 2u);
  verbs_.HoldWire();
  std::vector<ibv_send_wr> outstanding = Writes(2, 20);
  EXPECT_EQ(local_.work_queue->PostSend(outstanding).posted, 2u);
  Modify(local_, {.qp_state = IBV_QPS_RESET}, 0);
  verbs_.ReleaseWire();
  EXPECT_EQ(local_.work_queue->outstanding_sends(), 0u);
  const auto completions = local_.work_queue->Poll(16);
  ASSERT_TRUE(completions.ok());
  EXPECT_TRUE(completions->empty());
  std::vector<ibv_send_wr> refused = Writes(1);
  EXPECT_EQ(local_.work_queue->PostSend(refused).error_number, EINVAL);
}

TEST_F(WorkQueueTest, PollStopsAtMaxEntries) {
  ConnectBoth();
  std::vector<ibv_send_wr> requests = Writes(100);
  ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 100u);
  EXPECT_EQ(local_.work_queue->Poll(33)->size(), 33u);
  EXPECT_EQ(local_.work_queue->outstanding_sends(), 67u);
  EXPECT_EQ(local_.work_queue->Poll(1000)->size(), 67u);
}

TEST_F(WorkQueueTest, AFailingPollIsAnErrorNotAnEmptyQueue) {
  verbs_.FailNext("poll_cq", EIO);
  EXPECT_TRUE(absl::IsInternal(local_.work_queue->Poll(1).status()));
  verbs_.FailNext("req_notify_cq", EIO);
  EXPECT_FALSE(local_.work_queue->ArmAndPoll(1).ok());
}

TEST_F(WorkQueueTest, ArmAndPollReturnsWhatWasThereBeforeArming) {
  ConnectBoth();
  std::vector<ibv_send_wr> requests = Writes(1);
  ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 1u);
  EXPECT_EQ(local_.work_queue->ArmAndPoll(16)->size(), 1u);
}

// A completion between the first poll and the arming is the classic lost
// wake-up.
TEST_F(WorkQueueTest, NoWakeUpIsLostToACompletionJustBeforeArming) {
  ConnectBoth();
  std::atomic<bool> once = false;
  verbs_.Observe([&](std::string_view call) {
    if (call != "req_notify_cq" || once.exchange(true)) return;
    ibv_send_wr wr{.opcode = IBV_WR_SEND};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(verbs_.PostSend(remote_.qp.get(), &wr, &bad), 0);
  });
  std::vector<ibv_recv_wr> receives = Receives(1, 5);
  ASSERT_EQ(local_.work_queue->PostReceive(receives).posted, 1u);
  EXPECT_TRUE(local_.work_queue->Poll(16)->empty());
  const auto completions = local_.work_queue->ArmAndPoll(16);
  ASSERT_EQ(completions->size(), 1u);
  EXPECT_EQ(completions->front().wc.wr_id, 5u);
  verbs_.Observe({});
}

TEST_F(WorkQueueTest, TheNextCompletionAfterArmingRaisesOneEventForAllWaiters) {
  ConnectBoth();
  Occurrence first, second;
  local_.events->Subscribe([&] { first.Happen(); });
  local_.events->Subscribe([&] { second.Happen(); });
  ASSERT_TRUE(local_.work_queue->ArmAndPoll(16)->empty());
  std::vector<ibv_send_wr> requests = Writes(2);
  ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 2u);
  ASSERT_TRUE(first.Wait());
  ASSERT_TRUE(second.Wait());
  EXPECT_EQ(local_.work_queue->Poll(16)->size(), 2u);
}

TEST_F(WorkQueueTest, CloseWakesWaitersAndNothingTouchesTheDeviceAfterIt) {
  ConnectBoth();
  int woken = 0;
  local_.events->Subscribe([&] { ++woken; });
  local_.work_queue->Close();
  EXPECT_EQ(woken, 1);
  const uint64_t polls = verbs_.Calls("poll_cq");
  EXPECT_TRUE(absl::IsAborted(local_.work_queue->Poll(1).status()));
  EXPECT_TRUE(absl::IsAborted(local_.work_queue->ArmAndPoll(1).status()));
  std::vector<ibv_send_wr> sends = Writes(1);
  EXPECT_EQ(local_.work_queue->PostSend(sends).error_number, ECANCELED);
  std::vector<ibv_recv_wr> receives = Receives(1);
  EXPECT_EQ(local_.work_queue->PostReceive(receives).error_number, ECANCELED);
  local_.work_queue->StateChanged(IBV_QPS_RESET);
  EXPECT_EQ(verbs_.Calls("poll_cq"), polls);
  EXPECT_EQ(verbs_.Calls("post_send") + verbs_.Calls("post_recv") +
                verbs_.Calls("req_notify_cq"),
            0u);
}

TEST_F(WorkQueueTest, ConcurrentPostersAndPollersLoseNothing) {
  ConnectBoth();
  constexpr int kThreads = 4, kPosts = 400;
  std::atomic<int> polled = 0;
  auto post = [&](int thread) {
    for (int i = 0; i < kPosts;) {
      std::vector<ibv_send_wr> request = Writes(1, thread * kPosts + i);
      if (local_.work_queue->PostSend(request).posted == 1)
        ++i;
      else
        polled += local_.work_queue->Poll(8)->size();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(post, i);
  }
  polled += local_.work_queue->Poll(4096)->size();
  EXPECT_EQ(polled, kThreads * kPosts);
  EXPECT_EQ(local_.work_queue->outstanding_sends(), 0u);
  EXPECT_EQ(CountOf(counters_.completions, std::string("SUCCESS")),
            uint64_t{kThreads} * kPosts);
}

class HardwareWorkQueueTest : public WorkQueueTest {
 protected:
  const char* device_name() const override { return "mlx5_0"; }
  void SetUp() override {
    gid_index_ = 3;
    WorkQueueTest::SetUp();
  }
};

// On hardware a slot is free once its completion was polled.
TEST_F(HardwareWorkQueueTest, TheSendQueueIsFullUntilCompletionsArePolled) {
  ConnectBoth();
  const uint32_t slots = 128;  // what mlx5 makes of 100
  std::vector<ibv_send_wr> requests = Writes(200);
  EXPECT_EQ(local_.work_queue->PostSend(requests).posted, slots);
  EXPECT_EQ(local_.work_queue->PostSend(requests).error_number, ENOMEM);
  EXPECT_EQ(local_.work_queue->Poll(4096)->size(), slots);
  EXPECT_EQ(local_.work_queue->PostSend(requests).posted, slots);
}

TEST(CompletionStatusNameTest, NamesEveryStatus) {
  EXPECT_STREQ(CompletionStatusName(IBV_WC_SUCCESS), "SUCCESS");
  EXPECT_STREQ(CompletionStatusName(IBV_WC_LOC_PROT_ERR), "LOC_PROT_ERR");
  EXPECT_STREQ(CompletionStatusName(IBV_WC_WR_FLUSH_ERR), "WR_FLUSH_ERR");
  EXPECT_STREQ(CompletionStatusName(IBV_WC_RETRY_EXC_ERR), "RETRY_EXC_ERR");
  EXPECT_STREQ(CompletionStatusName(IBV_WC_RNR_RETRY_EXC_ERR),
               "RNR_RETRY_EXC_ERR");
  EXPECT_STREQ(CompletionStatusName(IBV_WC_GENERAL_ERR), "GENERAL_ERR");
  EXPECT_STREQ(CompletionStatusName(IBV_WC_TM_RNDV_INCOMPLETE),
               "TM_RNDV_INCOMPLETE");
  EXPECT_STREQ(CompletionStatusName(static_cast<ibv_wc_status>(4711)),
               "UNKNOWN");
}

}  // namespace
}  // namespace purser::sidecar
