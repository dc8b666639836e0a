// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <vector>

#include "gtest/gtest.h"
#include "sidecar/work_queue.h"
#include "tests/unit/sidecar/work_queue_fixture.h"

namespace purser::sidecar {
namespace {

class WorkQueuePollTest : public WorkQueueTest {};

TEST_F(WorkQueuePollTest, FlushedRequestsKeepTheirDirection) {
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

TEST_F(WorkQueuePollTest, ResetDropsWhatIsOutstandingAndWhatWasNotPolled) {
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

// Soft-RoCE leaves in the completion queue what was there at a RESET.
TEST_F(WorkQueuePollTest, ResetMakesTheWholeCompletionQueueFree) {
  ConnectBoth();
  for (int i = 0; i < 5; ++i) {
    std::vector<ibv_send_wr> requests = Writes(51);
    ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 51u);
  }
  Modify(local_, {.qp_state = IBV_QPS_RESET}, 0);
  Modify(remote_, {.qp_state = IBV_QPS_RESET}, 0);
  ConnectBoth();
  for (int i = 0; i < 5; ++i) {
    std::vector<ibv_send_wr> requests = Writes(51);
    ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 51u);
  }
  EXPECT_EQ(local_.work_queue->Poll(1000)->size(), 255u) << "none was lost";
}

// ibv_destroy_cq waits until every event that was read is acknowledged.
TEST_F(WorkQueuePollTest, ASubscriberMayEndTheCompletionQueue) {
  ConnectBoth();
  Occurrence ended;
  uint64_t subscription = 0;
  subscription = local_.events->Subscribe([&] {
    local_.events->Unsubscribe(subscription);
    Finish(local_);
    ended.Happen();
  });
  ASSERT_TRUE(ArmAndFetch(local_, 16)->empty());
  std::vector<ibv_send_wr> requests = Writes(1);
  ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 1u);
  EXPECT_TRUE(ended.Wait());
}

TEST_F(WorkQueuePollTest, PollStopsAtMaxEntries) {
  ConnectBoth();
  std::vector<ibv_send_wr> requests = Writes(100);
  ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 100u);
  EXPECT_EQ(local_.work_queue->Poll(33)->size(), 33u);
  EXPECT_EQ(local_.work_queue->outstanding_sends(), 67u);
  EXPECT_EQ(local_.work_queue->Poll(1000)->size(), 67u);
}

TEST_F(WorkQueuePollTest, AFailingPollIsAnErrorNotAnEmptyQueue) {
  verbs_.FailNext("poll_cq", EIO);
  EXPECT_TRUE(absl::IsInternal(local_.work_queue->Poll(1).status()));
  verbs_.FailNext("req_notify_cq", EIO);
  EXPECT_FALSE(ArmAndFetch(local_, 1).ok());
}

TEST_F(WorkQueuePollTest, ArmingTakesWhatWasThereBefore) {
  ConnectBoth();
  std::vector<ibv_send_wr> requests = Writes(1);
  ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 1u);
  EXPECT_EQ(ArmAndFetch(local_, 16)->size(), 1u);
}

// A completion between the first poll and the arming is the classic lost
// wake-up.
TEST_F(WorkQueuePollTest, NoWakeUpIsLostToACompletionJustBeforeArming) {
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
  const auto completions = ArmAndFetch(local_, 16);
  ASSERT_EQ(completions->size(), 1u);
  EXPECT_EQ(completions->front().wc.wr_id, 5u);
  verbs_.Observe({});
}

TEST_F(WorkQueuePollTest,
       TheNextCompletionAfterArmingRaisesOneEventForAllWaiters) {
  ConnectBoth();
  Occurrence first, second;
  local_.events->Subscribe([&] { first.Happen(); });
  local_.events->Subscribe([&] { second.Happen(); });
  ASSERT_TRUE(ArmAndFetch(local_, 16)->empty());
  std::vector<ibv_send_wr> requests = Writes(2);
  ASSERT_EQ(local_.work_queue->PostSend(requests).posted, 2u);
  ASSERT_TRUE(first.Wait());
  ASSERT_TRUE(second.Wait());
  EXPECT_EQ(local_.work_queue->Poll(16)->size(), 2u);
  Finish(local_);  // while those who are told of it are there
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
