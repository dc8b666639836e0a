// SPDX-License-Identifier: Apache-2.0
#include "sidecar/waiting_poll.h"

#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

constexpr std::chrono::seconds kLong(60);

// A queue pair whose receives can be flushed into completions, and a poll.
class WaitingPollTest : public ::testing::Test {
 protected:
  struct Call {
    v1::PollCompletionsResponse response;
    std::atomic<int> answers = 0;
    grpc::Status status;
    Occurrence answered;
    std::shared_ptr<WaitingPoll> poll;
  };

  WaitingPollTest() : queue_pair_(sidecar_.Create(sidecar_.Attach())) {
    ToInit();
  }

  std::unique_ptr<Call> Start(std::chrono::milliseconds wait) {
    auto call = std::make_unique<Call>();
    call->poll = std::make_shared<WaitingPoll>(
        queue_pair_, 16, &call->response,
        [call = call.get()](const grpc::Status& status) {
          call->status = status;
          ++call->answers;
          call->answered.Happen();
        });
    call->poll->Start(wait);
    return call;
  }

  void ToInit() {
    ASSERT_TRUE(queue_pair_
                    ->Modify({.qp_state = IBV_QPS_INIT, .port_num = 1},
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                 IBV_QP_ACCESS_FLAGS)
                    .ok());
  }
  void PostReceive() {
    ibv_recv_wr receive{.wr_id = 5};
    ASSERT_EQ(queue_pair_->work_queue().PostReceive({&receive, 1}).posted, 1u);
  }
  void Flush() {
    ASSERT_TRUE(
        queue_pair_->Modify({.qp_state = IBV_QPS_ERR}, IBV_QP_STATE).ok());
  }

  FakeSidecar sidecar_;
  std::shared_ptr<BrokeredQueuePair> queue_pair_;
};

TEST_F(WaitingPollTest, IsAnsweredByTheFirstCompletion) {
  PostReceive();
  auto call = Start(kLong);
  EXPECT_EQ(call->answers, 0);
  Flush();
  ASSERT_TRUE(call->answered.Wait());
  EXPECT_TRUE(call->status.ok());
  ASSERT_EQ(call->response.completions_size(), 1);
  EXPECT_EQ(call->response.completions(0).wr_id(), 5u);
  EXPECT_EQ(call->response.completions(0).status_name(), "WR_FLUSH_ERR");
  EXPECT_TRUE(call->response.completions(0).receive());
}

TEST_F(WaitingPollTest, IsAnsweredAtItsTime) {
  auto call = Start(std::chrono::milliseconds(5));
  ASSERT_TRUE(call->answered.Wait());
  EXPECT_TRUE(call->status.ok());
  EXPECT_EQ(call->response.completions_size(), 0);
  PostReceive();
  Flush();
  EXPECT_EQ(queue_pair_->Poll(16)->size(), 1u) << "left for the next poll";
  EXPECT_EQ(call->answers, 1);
}

TEST_F(WaitingPollTest, IsAnsweredByACancellation) {
  auto call = Start(kLong);
  call->poll->Cancel();
  ASSERT_TRUE(call->answered.Wait());
  EXPECT_EQ(call->status.error_code(), grpc::CANCELLED);
  call->poll->Cancel();
  EXPECT_EQ(call->answers, 1);
}

TEST_F(WaitingPollTest, IsAnsweredByTheQueuePairsEnd) {
  auto call = Start(kLong);
  queue_pair_->Destroy(absl::NotFoundError("gone"));
  ASSERT_TRUE(call->answered.Wait());
  EXPECT_EQ(call->status.error_code(), grpc::NOT_FOUND);
  auto late = Start(kLong);
  ASSERT_TRUE(late->answered.Wait());
  EXPECT_EQ(late->status.error_code(), grpc::NOT_FOUND);
}

TEST_F(WaitingPollTest, HoldsNothingOnceAnswered) {
  auto call = Start(kLong);
  const std::weak_ptr<WaitingPoll> poll = call->poll;
  call->poll->Cancel();
  call->poll.reset();
  EXPECT_TRUE(Eventually([&] { return poll.expired(); }));
}

// A completion, the time and a cancellation at once: one answer, and the
// completion is in it or still in the queue.
TEST_F(WaitingPollTest, IsAnsweredOnceWhateverRaces) {
  for (int round = 0; round < 60; ++round) {
    PostReceive();
    auto call = Start(std::chrono::milliseconds(round % 3));
    {
      std::jthread flush([&] { Flush(); });
      std::jthread cancel([&] {
        if (round % 2 == 0) call->poll->Cancel();
      });
    }
    ASSERT_TRUE(call->answered.Wait());
    EXPECT_EQ(call->answers, 1);
    const size_t left = queue_pair_->Poll(16)->size();
    EXPECT_EQ(call->response.completions_size() + left, 1u);
    ASSERT_TRUE(
        queue_pair_->Modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE).ok());
    ToInit();
  }
}

}  // namespace
}  // namespace purser::sidecar
