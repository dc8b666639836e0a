// SPDX-License-Identifier: Apache-2.0
#include "sidecar/shared_receive_queues.h"

#include "gmock/gmock.h"
#include "tests/unit/sidecar/sharing_fixture.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

using Queue = SharedReceiveQueues::Queue;

class SharedReceiveQueuesTest : public SharingTest {
 protected:
  SharedReceiveQueues& queues() { return sidecar_.shared_receive_queues(); }
  SharedReceiveQueues::CreateResult TryQueue(uint32_t max_wr,
                                             uint32_t max_sge = 1,
                                             const std::string& of = "") {
    return queues().Create({.client_id = client_,
                            .device = &sidecar_.device(),
                            .wanted = {.max_wr = max_wr, .max_sge = max_sge},
                            .class_name = of});
  }
  Queue CreateQueue(uint32_t max_wr = 100) {
    const auto result = TryQueue(max_wr);
    const Queue* queue = std::get_if<Queue>(&result);
    EXPECT_NE(queue, nullptr);
    return queue == nullptr ? nullptr : *queue;
  }
  QueuePairs::CreateRequest Using(const Queue& queue, uint32_t send_wr = 100) {
    QueuePairs::CreateRequest request = Request(send_wr, 0);
    request.cap.max_recv_sge = 0;
    request.shared_receive_queue_id = queue->facts().id;
    return request;
  }
  static uint32_t Fill(const Queue& queue, uint32_t most = 100000) {
    uint32_t posted = 0;
    while (posted < most) {
      ibv_recv_wr receive{.wr_id = 1000 + posted};
      if (queue->PostReceive({&receive, 1}).posted == 0) break;
      ++posted;
    }
    return posted;
  }
  absl::Status StatusOf(const QueuePairs::CreateResult& result) {
    const auto* status = std::get_if<absl::Status>(&result);
    return status == nullptr ? absl::OkStatus() : *status;
  }
};

TEST_F(SharedReceiveQueuesTest, IsChargedByTheModelAndReturnsItsBytes) {
  const Queue queue = CreateQueue();
  const auto& facts = queue->facts();
  const auto model = queue_memory::SharedReceiveQueueMemory(
      queue_memory::Provider::kRxe, {}, {.max_wr = 100, .max_sge = 1});
  EXPECT_EQ(sidecar_.held_bytes(), model.total().total());
  EXPECT_EQ(sidecar_.ledger().balance().leases, 0u) << "no queue pair";
  EXPECT_EQ(facts.slots, 127u);
  EXPECT_EQ(facts.owner->client, "app");
  EXPECT_EQ(live("srq"), 1);
  const auto ended = queues().Destroy(client_, facts.id);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->returned_bytes, model.total().total());
  EXPECT_EQ(sidecar_.held_bytes(), 0u);
  EXPECT_EQ(live("srq"), 0);
  EXPECT_TRUE(absl::IsNotFound(queues().Destroy(client_, facts.id).status()));
  ibv_recv_wr receive{};
  EXPECT_TRUE(absl::IsNotFound(queue->PostReceive({&receive, 1}).ended));
}

TEST_F(SharedReceiveQueuesTest, RefusalsReachNoDevice) {
  for (const auto& [max_wr, max_sge] : {std::pair(0u, 1u), std::pair(1u, 0u)}) {
    const auto result = TryQueue(max_wr, max_sge);
    ASSERT_TRUE(std::holds_alternative<Refusal>(result));
    EXPECT_EQ(std::get<Refusal>(result).reason, RefusalReason::kInvalid);
  }
  const auto no_class = TryQueue(10, 1, "bulk");
  ASSERT_TRUE(std::holds_alternative<Refusal>(no_class));
  EXPECT_THAT(std::get<Refusal>(no_class).message, HasSubstr("\"bulk\""));
  const auto too_deep = TryQueue(UINT32_MAX);
  ASSERT_TRUE(std::holds_alternative<Refusal>(too_deep));
  EXPECT_EQ(std::get<Refusal>(too_deep).reason, RefusalReason::kDeviceLimit);
  const auto too_much = TryQueue(1000000);
  ASSERT_TRUE(std::holds_alternative<Refusal>(too_much));
  const Refusal& refusal = std::get<Refusal>(too_much);
  EXPECT_EQ(refusal.reason, RefusalReason::kBudget);
  EXPECT_THAT(refusal.message, HasSubstr("shared receive queue 1000000/1"));
  EXPECT_THAT(refusal.remedy, HasSubstr("smaller max_wr"));
  EXPECT_EQ(sidecar_.verbs().Calls("create_srq"), 0u);
  EXPECT_EQ(sidecar_.held_bytes(), 0u);
  EXPECT_EQ(CountOf(sidecar_.counters().admissions, std::string("refused"),
                    std::string("budget")),
            1u);
}

TEST_F(SharedReceiveQueuesTest, WhatTheDeviceRefusesLeavesNothing) {
  sidecar_.verbs().FailNext("create_srq", ENOMEM);
  const auto result = TryQueue(100);
  ASSERT_TRUE(std::holds_alternative<Refusal>(result));
  EXPECT_EQ(std::get<Refusal>(result).reason, RefusalReason::kCreateFailed);
  EXPECT_EQ(CountOf(sidecar_.counters().create_failures, std::string("srq"),
                    std::string("ENOMEM")),
            1u);
  EXPECT_EQ(sidecar_.held_bytes(), 0u);
}

// Receives complete on the queue pair that they serve.
TEST_F(SharedReceiveQueuesTest, ServesAllItsQueuePairs) {
  const Queue queue = CreateQueue();
  const QueuePair a = Connected(Using(queue)), b = Connected(Using(queue));
  EXPECT_EQ(a->facts().shape->memory.receive_ring.slots, 0u)
      << "no ring of its own";
  EXPECT_EQ(queue->users(), 2u);
  ASSERT_EQ(Fill(queue, 5), 5u);
  ASSERT_EQ(PostAll(*b, 2, IBV_WR_SEND), 2u);
  ASSERT_EQ(PostAll(*a, 1, IBV_WR_SEND), 1u);
  const auto at_b = b->Poll(16);
  ASSERT_EQ(at_b->size(), 4u) << "two sends, two receives";
  uint64_t receives = 0;
  for (const Completion& completion : *at_b) {
    if (!completion.receive) continue;
    EXPECT_EQ(completion.wc.wr_id, 1000 + receives);
    ++receives;
  }
  EXPECT_EQ(receives, 2u);
  EXPECT_EQ(queue->outstanding(), 3u) << "one of them waits to be fetched";
  EXPECT_EQ(a->Poll(16)->size(), 2u);
  EXPECT_EQ(queue->outstanding(), 2u);
  ibv_recv_wr receive{};
  const PostResult own = a->work_queue().PostReceive({&receive, 1});
  EXPECT_EQ(own.error_number, EINVAL);
  EXPECT_THAT(own.message, HasSubstr("shared receive queue"));
}

// Soft-RoCE frees a slot when it is used: only what was fetched makes room.
TEST_F(SharedReceiveQueuesTest, NothingOverrunsHoweverMuchIsPosted) {
  const Queue queue = CreateQueue(100);
  std::vector<QueuePair> queue_pairs;
  for (int i = 0; i < 10; ++i) queue_pairs.push_back(Connected(Using(queue)));
  uint64_t receives = 0, sends = 0;
  receives += Fill(queue);
  EXPECT_EQ(receives, 127u);
  for (const QueuePair& queue_pair : queue_pairs) {
    sends += PostAll(*queue_pair, 20, IBV_WR_SEND);
    EXPECT_EQ(Fill(queue), 0u) << "none was fetched";
    sends += PostAll(*queue_pair);
  }
  uint64_t completed = 0, received = 0;
  for (const QueuePair& queue_pair : queue_pairs) {
    const auto some = queue_pair->Poll(100000);
    ASSERT_TRUE(some.ok());
    for (const Completion& completion : *some)
      ++(completion.receive ? received : completed);
  }
  EXPECT_EQ(received, 127u);
  EXPECT_GT(completed, 700u);
  EXPECT_EQ(queue->outstanding(), 0u);
  EXPECT_EQ(Fill(queue), 127u);
  EXPECT_EQ(CountOf(sidecar_.counters().post_failures, std::string("receive"),
                    std::string("ENOMEM")),
            12u);
}

TEST_F(SharedReceiveQueuesTest, CompletionQueuesHaveRoomForItsReceives) {
  const Queue queue = CreateQueue(1000);
  const QueuePair a = Create(Using(queue));
  ASSERT_EQ(Shared().size(), 1u);
  EXPECT_EQ(Shared()[0].slots, 127u + 1023);
  const QueuePair b = Create(Using(queue));
  EXPECT_EQ(Shared()[0].slots, 2u * 127 + 1023) << "once for both";
  ASSERT_TRUE(Destroy(a));
  ASSERT_TRUE(Destroy(b));
  QueuePairs::CreateRequest own = Using(queue);
  own.completions = CompletionOffer::Kind::kOwn;
  const QueuePair c = Create(own);
  EXPECT_GE(c->work_queue().cq()->cqe, 127 + 1023);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

TEST_F(SharedReceiveQueuesTest, EndsAfterItsQueuePairs) {
  const Queue queue = CreateQueue();
  const QueuePair queue_pair = Create(Using(queue));
  const uint64_t id = queue->facts().id;
  const absl::Status used = queues().Destroy(client_, id).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(used)) << used;
  EXPECT_EQ(queues().All().size(), 1u);
  std::vector<std::string> calls;
  sidecar_.verbs().Observe([&](std::string_view call) {
    if (call.starts_with("destroy")) calls.emplace_back(call);
  });
  sidecar_.broker().Detach(client_);
  ASSERT_TRUE(Eventually([&] { return sidecar_.object_count() == 0; }));
  sidecar_.verbs().Observe({});
  EXPECT_THAT(
      calls, ::testing::ElementsAre("destroy_qp", "destroy_cq", "destroy_srq"));
  EXPECT_TRUE(Eventually([&] { return sidecar_.held_bytes() == 0; }));
  const auto after = TryQueue(100);
  EXPECT_TRUE(std::holds_alternative<absl::Status>(after));
}

TEST_F(SharedReceiveQueuesTest, WhatCannotUseItSaysWhy) {
  const Queue queue = CreateQueue();
  QueuePairs::CreateRequest request = Using(queue);
  request.cap.max_recv_wr = 5;
  EXPECT_TRUE(absl::IsInvalidArgument(
      StatusOf(sidecar_.queue_pairs().Create(request))));
  request = Using(queue);
  request.detached = true;
  EXPECT_TRUE(absl::IsInvalidArgument(
      StatusOf(sidecar_.queue_pairs().Create(request))));
  request = Using(queue);
  request.device = &sidecar_.device(1);
  EXPECT_TRUE(absl::IsInvalidArgument(
      StatusOf(sidecar_.queue_pairs().Create(request))));
  request = Using(queue);
  request.shared_receive_queue_id = 4711;
  EXPECT_TRUE(
      absl::IsNotFound(StatusOf(sidecar_.queue_pairs().Create(request))));
  request = Using(queue);
  request.client_id = sidecar_.Attach("other");
  EXPECT_TRUE(absl::IsPermissionDenied(
      StatusOf(sidecar_.queue_pairs().Create(request))));
  EXPECT_EQ(queue->users(), 0u);
  EXPECT_EQ(sidecar_.verbs().Calls("create_qp"), 0u);
}

TEST_F(SharedReceiveQueuesTest, ALostDeviceEndsIt) {
  const Queue queue = CreateQueue();
  Create(Using(queue));
  sidecar_.verbs().RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  ASSERT_TRUE(Eventually([&] { return sidecar_.object_count() == 0; }));
  EXPECT_TRUE(Eventually([&] { return sidecar_.held_bytes() == 0; }));
  ibv_recv_wr receive{};
  EXPECT_TRUE(absl::IsUnavailable(queue->PostReceive({&receive, 1}).ended));
}

// What was completed and not fetched when the queue pair was reset or
// destroyed is room again.
TEST_F(SharedReceiveQueuesTest, CompletionsThatAreDroppedMakeRoom) {
  const Queue queue = CreateQueue();
  const QueuePair a = Connected(Using(queue)), b = Connected(Using(queue));
  ASSERT_EQ(Fill(queue), 127u);
  ASSERT_EQ(PostAll(*a, 10, IBV_WR_SEND), 10u);
  ASSERT_EQ(PostAll(*b, 20, IBV_WR_SEND), 20u);
  EXPECT_EQ(queue->outstanding(), 127u);
  ASSERT_TRUE(a->Modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE).ok());
  EXPECT_EQ(queue->outstanding(), 117u);
  ASSERT_TRUE(Destroy(b));
  EXPECT_EQ(queue->outstanding(), 97u);
  const QueuePair c = Connected(Using(queue));
  ASSERT_EQ(PostAll(*c, 7, IBV_WR_SEND), 7u);
  ASSERT_TRUE(Destroy(c));
  EXPECT_EQ(queue->outstanding(), 90u);
}

}  // namespace
}  // namespace purser::sidecar
