// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "sidecar/queue_pairs.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

// At every instant: observed from within the verbs calls.
TEST(QueuePairsConcurrencyTest, ConcurrentClientsNeverExceedTheBudget) {
  constexpr uint64_t kBudget = 600 << 10;
  constexpr int kClients = 16, kRounds = 30;
  FakeSidecar sidecar({.budget_bytes = kBudget});
  std::atomic<uint64_t> highest = 0;
  sidecar.verbs().Observe([&](std::string_view) {
    uint64_t held = sidecar.held_bytes(), seen = highest;
    while (held > seen && !highest.compare_exchange_weak(seen, held)) {
    }
  });
  std::atomic<int> granted = 0, refused = 0;
  auto client = [&](int number) {
    const std::string id = sidecar.Attach();
    for (int round = 0; round < kRounds; ++round) {
      // One client ends in the midst of its work.
      if (number == 0 && round == kRounds / 2) sidecar.broker().Detach(id);
      const auto result = sidecar.TryCreate(id, 20 + 10 * number);
      const auto* created =
          std::get_if<std::shared_ptr<BrokeredQueuePair>>(&result);
      if (created == nullptr) {
        ++refused;
        sidecar.queue_pairs().EndClient(id);
        continue;
      }
      ++granted;
      (*created)->CurrentState();
      if (round % 3 != 0)
        (void)sidecar.queue_pairs().Destroy(id, (*created)->facts().id);
    }
    sidecar.broker().Detach(id);
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kClients; ++i) threads.emplace_back(client, i);
  }
  EXPECT_TRUE(Eventually([&] { return sidecar.held_bytes() == 0; }));
  EXPECT_TRUE(Eventually([&] { return sidecar.object_count() == 0; }));
  EXPECT_LE(highest, kBudget);
  EXPECT_GT(highest, kBudget / 2);
  EXPECT_GT(granted, 0);
  EXPECT_GT(refused, 0);
  sidecar.verbs().Observe({});
}

// Posts, polls, modifies, listings and destructions of one queue pair at once.
TEST(QueuePairsConcurrencyTest, AQueuePairEndsUnderCallsInFlight) {
  FakeSidecar sidecar;
  for (int round = 0; round < 8; ++round) {
    const std::string client = sidecar.Attach();
    const auto queue_pair = sidecar.Create(client);
    const uint64_t id = queue_pair->facts().id;
    std::atomic<bool> stop = false;
    std::vector<std::jthread> threads;
    // However the round ends, before the threads are joined.
    const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)>
        at_the_end(&stop, [](std::atomic<bool>* flag) { *flag = true; });
    const auto repeat = [&](auto call) {
      threads.emplace_back([&stop, call] {
        while (!stop) call();
      });
    };
    repeat([&] { (void)queue_pair->Poll(16); });
    repeat([&] {
      (void)queue_pair->work_queue().Arm();
      (void)queue_pair->Fetch(16);
    });
    repeat([&] {
      ibv_recv_wr receive{};
      queue_pair->work_queue().PostReceive({&receive, 1});
    });
    repeat([&] {
      (void)queue_pair->Modify(
          {.qp_state = IBV_QPS_INIT, .port_num = 1},
          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
      (void)queue_pair->Modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
    });
    repeat([&] {
      for (const auto& listed : sidecar.queue_pairs().All())
        listed->CurrentState();
    });
    ASSERT_TRUE(
        Eventually([&] { return sidecar.verbs().Calls("modify_qp") > 2; }));
    if (round % 2 == 0)
      ASSERT_TRUE(sidecar.queue_pairs().Destroy(client, id).ok());
    else
      sidecar.broker().Detach(client);
    ASSERT_TRUE(Eventually([&] { return sidecar.object_count() == 0; }));
  }
}

}  // namespace
}  // namespace purser::sidecar
