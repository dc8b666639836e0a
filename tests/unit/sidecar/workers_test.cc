// SPDX-License-Identifier: Apache-2.0
#include "sidecar/workers.h"

#include <atomic>

#include "gtest/gtest.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

TEST(WorkersTest, RunsSoManyAtOnceAndTheOthersInTurn) {
  Occurrence release;
  std::atomic<int> running = 0, ended = 0;
  std::mutex mutex;
  std::vector<int> order;
  {
    Workers workers(2, 3);
    const auto block = [&] {
      ++running;
      release.Wait();
      ++ended;
    };
    ASSERT_TRUE(workers.Run(block));
    ASSERT_TRUE(workers.Run(block));
    ASSERT_TRUE(Eventually([&] { return running == 2; }));
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(workers.Run([&, i] {
        std::lock_guard lock(mutex);
        order.push_back(i);
      }));
    EXPECT_FALSE(workers.Run([] { FAIL(); })) << "three wait";
    EXPECT_EQ(ended, 0);
    release.Happen();
  }
  EXPECT_EQ(ended, 2) << "the end waits for what was taken";
  EXPECT_EQ(order.size(), 3u);
}

TEST(WorkersTest, OneThreadKeepsTheOrderAndIsUsedAgain) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  {
    Workers workers(1, 100);
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(workers.Run([&, i] {
        order.push_back(i);
        threads.push_back(std::this_thread::get_id());
      }));
  }
  ASSERT_EQ(order.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(order[i], i);
    EXPECT_EQ(threads[i], threads[0]);
  }
}

}  // namespace
}  // namespace purser::sidecar
