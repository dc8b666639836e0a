// SPDX-License-Identifier: Apache-2.0
#include "sidecar/work_queue.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sidecar/work_queue_fixture.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

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
  while (result.error_number == 0 && posted < 1000) {
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

TEST_F(WorkQueueTest, CloseWakesWaitersAndNothingTouchesTheDeviceAfterIt) {
  ConnectBoth();
  int woken = 0;
  local_.events->Subscribe([&] { ++woken; });
  local_.work_queue->Close(absl::AbortedError("ended"));
  local_.work_queue->Close(absl::InternalError("again"));
  EXPECT_EQ(woken, 1);
  const uint64_t polls = verbs_.Calls("poll_cq");
  EXPECT_TRUE(absl::IsAborted(local_.work_queue->Poll(1).status()));
  EXPECT_TRUE(absl::IsAborted(ArmAndFetch(local_, 1).status()));
  EXPECT_TRUE(absl::IsAborted(local_.work_queue->Collect()));
  std::vector<ibv_send_wr> sends = Writes(1);
  EXPECT_EQ(local_.work_queue->PostSend(sends).error_number, ECANCELED);
  EXPECT_TRUE(absl::IsAborted(local_.work_queue->PostSend(sends).ended));
  std::vector<ibv_recv_wr> receives = Receives(1);
  EXPECT_EQ(local_.work_queue->PostReceive(receives).error_number, ECANCELED);
  (void)local_.work_queue->StateChanged(IBV_QPS_RESET);
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

}  // namespace
}  // namespace purser::sidecar
