// SPDX-License-Identifier: Apache-2.0
//
// Many threads on one account: the bound holds at every instant that a watcher
// sees, and nothing is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "ledger/ledger.h"

namespace purser::ledger {
namespace {

constexpr int kThreads = 16;
constexpr int kRounds = 60000;
constexpr uint64_t kTotalBound = 2000;
constexpr uint64_t kContainerBound = 1200;

// Reserves, commits and releases at random; counts what it was granted.
struct Client {
  void Run(Ledger ledger, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Charge> leases;
    for (int round = 0; round < kRounds; ++round) {
      const Charge charge = {random() % 900, random() % 700};
      if (ledger.Reserve(charge).ok()) {
        ++granted;
        const Charge actual = {random() % 900, random() % 700};
        leases.push_back(ledger.Commit(charge, actual).ok() ? actual : charge);
      } else {
        ++refused;
      }
      const size_t keep = random() % 3;
      while (leases.size() > keep) {
        ledger.Release(leases.back());
        leases.pop_back();
      }
    }
    for (const Charge& lease : leases) ledger.Release(lease);
  }
  uint64_t granted = 0, refused = 0;
};

TEST(LedgerConcurrency, HeldNeverExceedsABoundAtAnyInstant) {
  LedgerState state{};
  Ledger::Format(state);
  Ledger ledger(&state);
  ledger.SetBounds(kTotalBound, kContainerBound);

  std::latch start(kThreads + 1);
  std::atomic<bool> done = false;
  uint64_t most_total = 0, most_container = 0, looks = 0;
  std::thread watcher([&] {
    start.arrive_and_wait();
    while (!done) {
      most_total = std::max(most_total, state.total_held.load());
      most_container = std::max(most_container, state.container_held.load());
      ++looks;
    }
  });
  std::vector<Client> clients(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        clients[i].Run(ledger, i);
      });
  }
  done = true;
  watcher.join();

  EXPECT_LE(most_total, kTotalBound);
  EXPECT_LE(most_container, kContainerBound);
  EXPECT_GT(looks, 0u);
  uint64_t granted = 0, refused = 0;
  for (const Client& client : clients) {
    granted += client.granted;
    refused += client.refused;
  }
  const Balance balance = ledger.balance();
  EXPECT_EQ(balance.held, Charge());
  EXPECT_EQ(balance.leases, 0u);
  EXPECT_EQ(balance.reserves_granted, granted);
  EXPECT_EQ(balance.reserves_refused, refused);
  EXPECT_EQ(granted + refused, uint64_t{kThreads} * kRounds);
  EXPECT_GT(granted, 0u);
  EXPECT_GT(refused, 0u);
  EXPECT_LE(balance.peak_total_held, kTotalBound);
}

// Leases of which no two fit together exclude one another.
TEST(LedgerConcurrency, OneOfTwoThatDoNotFitTogether) {
  constexpr Charge kCharge = {400, 200};
  LedgerState state{};
  Ledger::Format(state);
  Ledger ledger(&state);
  ledger.SetBounds(1000, 1000);
  std::latch start(kThreads);
  std::atomic<int> inside = 0, most = 0, granted = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        start.arrive_and_wait();
        for (int round = 0; round < kRounds; ++round) {
          if (!ledger.Reserve(kCharge).ok()) continue;
          ++granted;
          const int now = ++inside;
          if (now > most) most = now;
          --inside;
          ledger.Release(kCharge);
        }
      });
  }
  EXPECT_EQ(most, 1);
  EXPECT_GT(granted, 0);
  EXPECT_EQ(ledger.balance().held, Charge());
}

// Of equal reserves exactly as many are granted as fit.
TEST(LedgerConcurrency, ExactlyAsManyAsFit) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    LedgerState state{};
    Ledger::Format(state);
    Ledger ledger(&state);
    ledger.SetBounds(1000, 1000);
    std::latch start(kThreads);
    std::atomic<int> granted = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
          start.arrive_and_wait();
          for (int n = 0; n < 20; ++n)
            if (ledger.Reserve({7, 0}).ok()) ++granted;
        });
    }
    ASSERT_EQ(granted, 1000 / 7);
    ASSERT_EQ(ledger.balance().held, (Charge{7 * (1000 / 7), 0}));
  }
}

// Once SetBounds() has returned, nothing is granted beyond the new bound: what
// is counted as granted later had its bytes when the bound fell.
TEST(LedgerConcurrency, NothingIsGrantedAfterABoundWasLowered) {
  constexpr Charge kCharge = {5, 5};
  LedgerState state{};
  Ledger::Format(state);
  Ledger ledger(&state);
  std::atomic<bool> done = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!done)
        if (ledger.Reserve(kCharge).ok()) ledger.Release(kCharge);
    });
  uint64_t worst = 0;
  for (int repeat = 0; repeat < 100000; ++repeat) {
    ledger.SetBounds(0, kUnlimited);
    const uint64_t held = state.total_held.load();
    const uint64_t granted = state.reserves_granted.load();
    uint64_t later = 0;
    for (int look = 0; look < 20; ++look)
      later = state.reserves_granted.load() - granted;
    worst = std::max(worst, later * kCharge.total() > held ? later : 0);
    ledger.SetBounds(kUnlimited, kUnlimited);
  }
  done = true;
  threads.clear();
  EXPECT_EQ(worst, 0u);
  EXPECT_EQ(ledger.balance().held, Charge());
}

}  // namespace
}  // namespace purser::ledger
