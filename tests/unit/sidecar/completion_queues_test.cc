// SPDX-License-Identifier: Apache-2.0
#include "sidecar/completion_queues.h"

#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "queue_memory/fit.h"
#include "tests/unit/sidecar/sharing_fixture.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

class CompletionQueuesTest : public SharingTest {};

TEST_F(CompletionQueuesTest, QueuePairsThatNameOneShareIt) {
  const QueuePair first = Create(Request()), second = Create(Request());
  EXPECT_EQ(live("cq"), 1);
  EXPECT_EQ(first->work_queue().cq(), second->work_queue().cq());
  EXPECT_NE(first->facts().completion_queue_id, 0u);
  EXPECT_EQ(first->facts().completion_queue_id,
            second->facts().completion_queue_id);
  const auto shared = Shared();
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].queue_pairs, 2u);
  EXPECT_EQ(shared[0].slots, 4u * 127);
  EXPECT_GE(shared[0].cqe, queue_memory::WithHeadroom(4 * 127));
  EXPECT_EQ(shared[0].growths, 1u);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
  EXPECT_EQ(sidecar_.ledger().balance().leases, 2u) << "rdma/qp units";
}

TEST_F(CompletionQueuesTest, ItEndsWithTheLastOfThemAndItsBytesReturn) {
  const QueuePair first = Create(Request()), second = Create(Request());
  const uint64_t held = sidecar_.held_bytes();
  const uint64_t queue = Shared()[0].memory.total().total();
  uint64_t returned = 0;
  ASSERT_TRUE(Destroy(first, &returned));
  EXPECT_EQ(returned, first->facts().shape->memory.total().total());
  EXPECT_EQ(live("cq"), 1);
  EXPECT_EQ(Shared()[0].slots, 2u * 127);
  EXPECT_EQ(sidecar_.held_bytes(), held - returned);
  ASSERT_TRUE(Destroy(second, &returned));
  EXPECT_EQ(returned, second->facts().shape->memory.total().total() + queue);
  EXPECT_EQ(sidecar_.held_bytes(), 0u);
  EXPECT_EQ(sidecar_.object_count(), 0);
  EXPECT_TRUE(Shared().empty());
}

// Nobody's completions or bytes are another's.
TEST_F(CompletionQueuesTest, OnlyQueuePairsOfOneClientDeviceAndNameShare) {
  std::set<ibv_cq*> queues;
  const auto add = [&](const QueuePairs::CreateRequest& request) {
    queues.insert(Create(request)->work_queue().cq());
  };
  add(Request());
  add(Request());
  QueuePairs::CreateRequest request = Request();
  request.completion_queue = "other";
  add(request);
  request = Request();
  request.device = &sidecar_.device(1);
  add(request);
  request = Request();
  request.client_id = sidecar_.Attach("app");  // of the same name
  add(request);
  EXPECT_EQ(queues.size(), 4u);
  request = Request();
  request.completions = CompletionOffer::Kind::kOwn;
  add(request);
  request = Request();
  request.detached = true;  // outlives its client
  add(request);
  EXPECT_EQ(queues.size(), 6u);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

TEST_F(CompletionQueuesTest, ADefaultThatCostsLess) {
  QueuePairs::CreateRequest request = Request();
  request.completions = CompletionOffer::Kind::kCheapest;
  request.completion_queue = "";
  EXPECT_EQ(Create(request)->facts().completion_queue_id, 0u)
      << "254 slots fit 255 entries";
  request.device = &sidecar_.device(1);
  // 256 slots need 512 entries of mlx5, which others may use, too.
  EXPECT_NE(Create(request)->facts().completion_queue_id, 0u);
  EXPECT_NE(Create(request)->facts().completion_queue_id, 0u);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

class CompletionQueueGrowthTest : public CompletionQueuesTest,
                                  public ::testing::WithParamInterface<size_t> {
};

// Grown while in use: at every size all queues of all queue pairs are filled
// before anything is polled, and every completion comes to who posted it.
TEST_P(CompletionQueueGrowthTest, NothingOverrunsHoweverMuchIsPosted) {
  std::mt19937 random(7);
  std::vector<QueuePair> queue_pairs;
  std::map<uint64_t, uint64_t> posted;
  for (int i = 0; i < 50; ++i) {
    QueuePairs::CreateRequest request =
        Request(1 + random() % 200, 1 + random() % 100);
    request.device = &sidecar_.device(GetParam());
    queue_pairs.push_back(Connected(request));
    for (const QueuePair& queue_pair : queue_pairs)
      posted[queue_pair->facts().id] +=
          PostAll(*queue_pair) + PostReceives(*queue_pair);
    const QueuePairShape& shape = *queue_pairs.back()->facts().shape;
    EXPECT_EQ(posted[queue_pairs.back()->facts().id],
              shape.send_slots() + shape.recv_slots())
        << "all that the model's slots are";
    if (i % 7 == 3) {
      const size_t gone = random() % queue_pairs.size();
      ASSERT_TRUE(Destroy(queue_pairs[gone]));
      queue_pairs.erase(queue_pairs.begin() + static_cast<ptrdiff_t>(gone));
    }
    uint64_t slots = 0, entries = 0;
    for (const auto& shared : Shared()) {
      EXPECT_LE(shared.slots, shared.cqe);
      slots += shared.slots;
      entries += shared.cqe;
    }
    EXPECT_LE(slots, entries);
    EXPECT_EQ(sidecar_.held_bytes(), Accounted());
  }
  EXPECT_GT(sidecar_.verbs().Calls("resize_cq"), 2u);
  for (const QueuePair& queue_pair : queue_pairs) {
    // Receives that nothing came for are flushed.
    ASSERT_TRUE(
        queue_pair->Modify({.qp_state = IBV_QPS_ERR}, IBV_QP_STATE).ok());
    std::vector<Completion> all;
    while (true) {
      const auto some = queue_pair->Poll(13);
      ASSERT_TRUE(some.ok()) << some.status();
      if (some->empty()) break;
      all.insert(all.end(), some->begin(), some->end());
    }
    EXPECT_EQ(all.size(), posted[queue_pair->facts().id]) << "none was lost";
    for (const Completion& completion : all)
      EXPECT_EQ(completion.wc.qp_num, queue_pair->facts().qp_num);
  }
}
INSTANTIATE_TEST_SUITE_P(Devices, CompletionQueueGrowthTest,
                         ::testing::Values(0, 1));

TEST_F(CompletionQueuesTest, WhereTheDeviceDoesNotGrowItAFurtherOneIsMade) {
  Create(Request());
  sidecar_.verbs().FailNext("resize_cq", EOPNOTSUPP);
  const QueuePair second = Create(Request());
  EXPECT_EQ(sidecar_.verbs().Calls("resize_cq"), 1u);
  EXPECT_EQ(live("cq"), 2);
  EXPECT_EQ(Shared().size(), 2u);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
  // The further one is grown, the first is left alone.
  Create(Request());
  EXPECT_EQ(live("cq"), 2);
  EXPECT_EQ(sidecar_.verbs().Calls("resize_cq"), 2u);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

// Charged before it is done: what does not fit reaches no device.
TEST_F(CompletionQueuesTest, AGrowthThatDoesNotFitIsRefusedWithItsBytes) {
  Create(Request());
  const uint64_t queue = Shared()[0].memory.total().total();
  const uint64_t held = sidecar_.held_bytes();
  BudgetInputs inputs;
  // One more queue pair, but not the larger completion queue.
  inputs.explicit_bytes = held + (held - queue) + queue / 2;
  sidecar_.admission().SetBudget(DetermineBudget(inputs).value());
  const auto result = sidecar_.queue_pairs().Create(Request());
  const auto* refusal = std::get_if<Refusal>(&result);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->reason, RefusalReason::kBudget);
  EXPECT_GT(refusal->needed.completion.node, queue / 2);
  EXPECT_THAT(refusal->message, HasSubstr("completion queue"));
  EXPECT_EQ(sidecar_.verbs().Calls("resize_cq"), 0u);
  EXPECT_EQ(sidecar_.verbs().Calls("create_cq"), 1u);
  EXPECT_EQ(sidecar_.held_bytes(), held);
}

TEST_F(CompletionQueuesTest, AQueuePairThatIsNotCreatedLeavesItAsItWas) {
  Create(Request());
  const uint64_t held = sidecar_.held_bytes();
  sidecar_.verbs().FailNext("create_qp", ENOMEM);
  sidecar_.queue_pairs().Create(Request());
  EXPECT_EQ(Shared()[0].queue_pairs, 1u);
  EXPECT_EQ(Shared()[0].slots, 2u * 127);
  EXPECT_EQ(Shared()[0].growths, 1u) << "what was grown stays, and is charged";
  EXPECT_GT(sidecar_.held_bytes(), held);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

TEST_F(CompletionQueuesTest, TheFirstThatIsNotCreatedLeavesNothing) {
  sidecar_.verbs().FailNext("create_qp", ENOMEM);
  sidecar_.queue_pairs().Create(Request());
  sidecar_.verbs().FailNext("create_cq", ENOMEM);
  sidecar_.queue_pairs().Create(Request());
  EXPECT_EQ(sidecar_.object_count(), 0);
  EXPECT_EQ(sidecar_.held_bytes(), 0u);
}

// Old and new are there together for a moment.
TEST_F(CompletionQueuesTest, AGrowthIsChargedForBothQueuesWhileItLasts) {
  Create(Request());
  const uint64_t before = Shared()[0].memory.total().total();
  const uint64_t held = sidecar_.held_bytes();
  const QueuePair second = Create(Request());
  ASSERT_EQ(Shared()[0].growths, 1u);
  const uint64_t after = Shared()[0].memory.total().total();
  const uint64_t queue_pair = second->facts().shape->memory.total().total();
  EXPECT_EQ(sidecar_.held_bytes(), held + queue_pair + after - before);
  EXPECT_EQ(sidecar_.ledger().balance().peak_total_held,
            held + queue_pair + after);

  // Room for the larger queue, but not for both: a further one.
  BudgetInputs inputs;
  const uint64_t larger = sidecar_.held_bytes();
  ASSERT_TRUE(Destroy(second));
  sidecar_.queue_pairs().GiveBack();
  ASSERT_EQ(sidecar_.held_bytes(), held);
  inputs.explicit_bytes = larger + 8192;
  sidecar_.admission().SetBudget(DetermineBudget(inputs).value());
  Create(Request());
  EXPECT_EQ(Shared().size(), 2u);
  EXPECT_EQ(Shared()[0].growths, 1u);
  EXPECT_LE(sidecar_.held_bytes(), larger + 8192);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

// ---- What is in no use ----

class CompletionQueueGiveBackTest : public CompletionQueueGrowthTest {};

TEST_P(CompletionQueueGiveBackTest, NothingThatIsInUseIsGivenBack) {
  std::vector<QueuePair> queue_pairs;
  for (int i = 0; i < 40; ++i) {
    QueuePairs::CreateRequest request = Request();
    request.device = &sidecar_.device(GetParam());
    queue_pairs.push_back(Connected(request));
  }
  sidecar_.queue_pairs().GiveBack();
  while (queue_pairs.size() > 5) {
    ASSERT_TRUE(Destroy(queue_pairs.back()));
    queue_pairs.pop_back();
  }
  // Completions that wait in the queue stay in it.
  uint64_t posted = 0;
  for (const QueuePair& queue_pair : queue_pairs)
    posted += PostAll(*queue_pair, 60);
  const uint64_t held = sidecar_.held_bytes();
  const uint64_t returned = sidecar_.queue_pairs().GiveBack();
  EXPECT_GT(returned, 0u);
  EXPECT_EQ(sidecar_.held_bytes(), held - returned);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
  EXPECT_EQ(sidecar_.queue_pairs().GiveBack(), 0u)
      << "it is as small as it can";
  for (const auto& shared : Shared()) EXPECT_LE(shared.slots, shared.cqe);
  for (const QueuePair& queue_pair : queue_pairs)
    posted += PostAll(*queue_pair) + PostReceives(*queue_pair);
  uint64_t taken = 0;
  for (const QueuePair& queue_pair : queue_pairs) {
    ASSERT_TRUE(
        queue_pair->Modify({.qp_state = IBV_QPS_ERR}, IBV_QP_STATE).ok());
    taken += queue_pair->Poll(100000)->size();
  }
  EXPECT_EQ(taken, posted) << "none was lost";
  // It grows again.
  QueuePairs::CreateRequest request = Request();
  request.device = &sidecar_.device(GetParam());
  for (int i = 0; i < 10; ++i) queue_pairs.push_back(Create(request));
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}
INSTANTIATE_TEST_SUITE_P(Devices, CompletionQueueGiveBackTest,
                         ::testing::Values(0, 1));

// Then it is needed most.
TEST_F(CompletionQueuesTest, ItIsGivenBackWhereMoreIsInUseThanTheBudget) {
  std::vector<QueuePair> queue_pairs;
  for (int i = 0; i < 20; ++i) queue_pairs.push_back(Create(Request()));
  for (size_t i = 2; i < queue_pairs.size(); ++i)
    ASSERT_TRUE(Destroy(queue_pairs[i]));
  const uint64_t held = sidecar_.held_bytes();
  BudgetInputs inputs;
  inputs.explicit_bytes = held / 2;
  sidecar_.admission().SetBudget(DetermineBudget(inputs).value());
  const uint64_t returned = sidecar_.queue_pairs().GiveBack();
  EXPECT_GT(returned, 0u);
  EXPECT_EQ(sidecar_.held_bytes(), held - returned);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

// The growth of one that is there costs more than a further one.
TEST_F(CompletionQueuesTest, AFurtherOneIsMadeWhereThereIsNoRoomForGrowth) {
  for (int i = 0; i < 20; ++i) Create(Request());
  ASSERT_EQ(Shared().size(), 1u);
  const uint64_t queue = Shared()[0].memory.total().total();
  BudgetInputs inputs;
  inputs.explicit_bytes = sidecar_.held_bytes() + queue;
  sidecar_.admission().SetBudget(DetermineBudget(inputs).value());
  // Until it would have to grow.
  while (Shared().size() == 1) Create(Request());
  EXPECT_EQ(Shared()[0].memory.total().total(), queue);
  EXPECT_EQ(sidecar_.held_bytes(), Accounted());
}

TEST_F(CompletionQueuesTest, WhatTheDeviceDoesNotMakeSmallerStays) {
  std::vector<QueuePair> queue_pairs;
  for (int i = 0; i < 10; ++i) queue_pairs.push_back(Create(Request()));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Destroy(queue_pairs[i]));
  const uint64_t held = sidecar_.held_bytes();
  const auto give_back = [&](int error_number) {
    if (error_number != 0) sidecar_.verbs().FailNext("resize_cq", error_number);
    const uint64_t calls = sidecar_.verbs().Calls("resize_cq");
    const uint64_t returned = sidecar_.queue_pairs().GiveBack();
    EXPECT_EQ(sidecar_.held_bytes(), held - returned);
    EXPECT_EQ(sidecar_.held_bytes(), Accounted());
    return std::pair(sidecar_.verbs().Calls("resize_cq") - calls, returned);
  };
  EXPECT_EQ(give_back(ENOMEM), std::pair(1ul, 0ul));
  EXPECT_EQ(give_back(EOPNOTSUPP), std::pair(1ul, 0ul)) << "asked again";
  EXPECT_EQ(give_back(0), std::pair(0ul, 0ul)) << "not asked again";
}

// ---- Whose completion it is ----

TEST_F(CompletionQueuesTest, PollingOneLeavesTheOthersCompletionsToThem) {
  const QueuePair a = Connected(Request()), b = Connected(Request());
  ASSERT_EQ(PostAll(*a, 3), 3u);
  ASSERT_EQ(PostAll(*b, 2), 2u);
  EXPECT_EQ(a->Poll(16)->size(), 3u);
  EXPECT_EQ(b->work_queue().backlog(), 2u) << "taken, not fetched";
  EXPECT_EQ(b->work_queue().outstanding_sends(), 2u);
  EXPECT_EQ(a->Poll(16)->size(), 0u);
  const auto left = b->Poll(16);
  ASSERT_EQ(left->size(), 2u);
  EXPECT_EQ((*left)[0].wc.wr_id, 0u);
  EXPECT_EQ((*left)[1].wc.wr_id, 1u);
  EXPECT_EQ(b->work_queue().backlog(), 0u);
}

// Soft-RoCE leaves completions of a queue pair that was destroyed, or reset, in
// the queue, and gives its number to the next.
TEST_F(CompletionQueuesTest, WhatADestroyedQueuePairLeavesIsNobodys) {
  const QueuePair a = Connected(Request()), b = Connected(Request());
  ASSERT_EQ(PostAll(*a, 100), 100u);
  ASSERT_EQ(PostAll(*b, 5), 5u);
  ASSERT_TRUE(Destroy(a));
  EXPECT_EQ(b->work_queue().backlog(), 5u) << "all were taken";
  const QueuePair c = Connected(Request());
  EXPECT_EQ(c->Poll(4096)->size(), 0u);
  ASSERT_EQ(PostAll(*c), 254u) << "there is room again";
  EXPECT_EQ(c->Poll(4096)->size(), 254u);
  ASSERT_TRUE(b->Modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE).ok());
  EXPECT_EQ(b->Poll(16)->size(), 0u);
  EXPECT_EQ(b->work_queue().outstanding_sends(), 0u);
}

// A client that does not poll one queue pair keeps none of the others waiting.
TEST_F(CompletionQueuesTest, AQueuePairThatIsNotPolledHoldsUpNobody) {
  const QueuePair idle = Connected(Request()), busy = Connected(Request());
  ASSERT_EQ(PostAll(*idle), 254u);
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(PostAll(*busy), 254u);
    ASSERT_EQ(busy->Poll(4096)->size(), 254u);
  }
  EXPECT_EQ(PostAll(*idle), 0u) << "its own part is used up";
  EXPECT_EQ(idle->Poll(4096)->size(), 254u);
}

TEST_F(CompletionQueuesTest, ALostDeviceEndsThemAll) {
  Create(Request());
  Create(Request());
  QueuePairs::CreateRequest elsewhere = Request();
  elsewhere.device = &sidecar_.device(1);
  Create(elsewhere);
  sidecar_.verbs().RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  ASSERT_TRUE(Eventually([&] { return sidecar_.queue_pairs().count() == 1; }));
  ASSERT_TRUE(Eventually([&] { return Shared().size() == 1; }));
  EXPECT_TRUE(Eventually([&] { return sidecar_.held_bytes() == Accounted(); }));
}

}  // namespace
}  // namespace purser::sidecar
