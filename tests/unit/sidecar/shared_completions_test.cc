// SPDX-License-Identifier: Apache-2.0
//
// Those who wait for completions of queue pairs that share a completion queue.
#include <atomic>
#include <thread>

#include "sidecar/waiting_poll.h"
#include "tests/unit/sidecar/sharing_fixture.h"

namespace purser::sidecar {
namespace {

class SharedCompletionsTest : public SharingTest {
 protected:
  struct Call {
    v1::PollCompletionsResponse response;
    std::atomic<int> answers = 0;
    Occurrence answered;
    std::shared_ptr<WaitingPoll> poll;
  };
  std::unique_ptr<Call> Wait(const QueuePair& queue_pair) {
    auto call = std::make_unique<Call>();
    call->poll =
        std::make_shared<WaitingPoll>(queue_pair, 16, &call->response,
                                      [call = call.get()](const grpc::Status&) {
                                        ++call->answers;
                                        call->answered.Happen();
                                      });
    call->poll->Start(std::chrono::seconds(60));
    return call;
  }
};

TEST_F(SharedCompletionsTest, AnEventWakesTheOneThatItIsFor) {
  const QueuePair a = Connected(Request()), b = Connected(Request());
  auto waits_a = Wait(a), waits_b = Wait(b);
  ASSERT_EQ(PostAll(*b, 1), 1u);
  ASSERT_TRUE(waits_b->answered.Wait());
  EXPECT_EQ(waits_b->response.completions_size(), 1);
  EXPECT_EQ(waits_a->answers, 0);
  // The event of b's was the one that a had asked for: it is asked for again.
  ASSERT_EQ(PostAll(*a, 1), 1u);
  ASSERT_TRUE(waits_a->answered.Wait());
  EXPECT_EQ(waits_a->response.completions_size(), 1);
}

TEST_F(SharedCompletionsTest, AnotherPollThatTakesThemAlongWakesWhoWaits) {
  const QueuePair a = Connected(Request()), b = Connected(Request());
  auto waits = Wait(b);
  // No event comes.
  sidecar_.verbs().FailAlways("get_cq_event", EIO);
  sidecar_.verbs().HoldWire();
  ASSERT_EQ(PostAll(*b, 1), 1u);
  sidecar_.verbs().ReleaseWire();
  EXPECT_TRUE(a->Poll(16)->empty());
  ASSERT_TRUE(waits->answered.Wait());
  EXPECT_EQ(waits->response.completions_size(), 1);
  sidecar_.verbs().StopFailing("get_cq_event");
}

TEST_F(SharedCompletionsTest, SoDoesTheEndOfAnother) {
  const QueuePair a = Connected(Request()), b = Connected(Request());
  auto waits = Wait(b);
  sidecar_.verbs().FailAlways("get_cq_event", EIO);
  ASSERT_EQ(PostAll(*b, 1), 1u);
  ASSERT_TRUE(Destroy(a));
  ASSERT_TRUE(waits->answered.Wait());
  EXPECT_EQ(waits->response.completions_size(), 1);
  sidecar_.verbs().StopFailing("get_cq_event");
}

TEST_F(SharedCompletionsTest, WhatWasTakenBeforeIsThereAtOnce) {
  const QueuePair a = Connected(Request()), b = Connected(Request());
  ASSERT_EQ(PostAll(*b, 1), 1u);
  EXPECT_TRUE(a->Poll(16)->empty());
  auto waits = Wait(b);
  EXPECT_EQ(waits->answers, 1);
}

// Posts, polls, waits, resets and ends of queue pairs of one completion queue,
// while it grows.
TEST_F(SharedCompletionsTest, EverythingAtOnce) {
  constexpr int kPosts = 300;
  std::atomic<bool> stop = false;
  std::atomic<int> fetched = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, queue_pair = Connected(Request())] {
      for (int n = 0; n < kPosts; ++n) {
        ASSERT_EQ(PostAll(*queue_pair, 1), 1u);
        auto call = Wait(queue_pair);
        ASSERT_TRUE(call->answered.Wait());
        fetched += call->response.completions_size();
      }
    });
  }
  std::jthread churn([&] {
    while (!stop) {
      const QueuePair queue_pair = Connected(Request(10, 10));
      PostAll(*queue_pair, 5);
      (void)queue_pair->Modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
      EXPECT_TRUE(Destroy(queue_pair));
    }
  });
  std::jthread watch([&] {
    while (!stop) {
      for (const auto& shared : Shared()) EXPECT_LE(shared.slots, shared.cqe);
      for (const auto& queue_pair : sidecar_.queue_pairs().All())
        (void)queue_pair->work_queue().backlog();
    }
  });
  threads.clear();
  stop = true;
  EXPECT_EQ(fetched, 3 * kPosts);
}

}  // namespace
}  // namespace purser::sidecar
