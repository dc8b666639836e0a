// SPDX-License-Identifier: Apache-2.0
//
// Random operations on the ledger beside a plain account with 128-bit sums.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "ledger/ledger.h"

namespace purser::ledger {
namespace {

using Wide = unsigned __int128;

struct Account {
  Wide total_bound = kUnlimited, container_bound = kUnlimited;
  Wide total = 0, container = 0, peak = 0;
  uint64_t granted = 0, refused = 0;

  Bound Refuses(Wide more_total, Wide more_container) const {
    if (more_total > 0 && total + more_total > total_bound)
      return Bound::kTotal;
    if (more_container > 0 && container + more_container > container_bound)
      return Bound::kContainer;
    return Bound::kNone;
  }
  void Set(Wide new_total, Wide new_container) {
    total = new_total;
    container = new_container;
    peak = std::max(peak, total);
  }
};

Wide Total(Charge charge) { return Wide{charge.container} + charge.node; }
Wide Excess(Wide a, Wide b) { return a > b ? a - b : 0; }

class Walk {
 public:
  explicit Walk(uint32_t seed) : random_(seed) { Ledger::Format(state_); }

  void Step() {
    switch (random_() % 8) {
      case 0:
        return Rebound();
      case 1:
      case 2:
        return Release();
      case 3:
      case 4:
        return Commit();
      default:
        return Reserve();
    }
  }

  void ExpectSame() {
    const Balance balance = ledger_.balance();
    ASSERT_EQ(Wide{balance.held.container}, account_.container);
    ASSERT_EQ(Total(balance.held), account_.total);
    ASSERT_EQ(balance.leases, leases_.size());
    ASSERT_EQ(balance.reserves_granted, account_.granted);
    ASSERT_EQ(balance.reserves_refused, account_.refused);
    ASSERT_EQ(Wide{balance.peak_total_held}, account_.peak);
  }

 private:
  // Mostly small; now and then near the ends of 64 bits.
  uint64_t Bytes() {
    switch (random_() % 16) {
      case 0:
        return UINT64_MAX - random_() % 4;
      case 1:
        return random_();
      case 2:
        return 0;
      default:
        return random_() % 1000;
    }
  }
  Charge SomeCharge() { return {Bytes(), Bytes()}; }

  void Rebound() {
    const uint64_t total = random_() % 4 == 0 ? kUnlimited : random_() % 20000;
    const uint64_t container =
        random_() % 4 == 0 ? kUnlimited : random_() % 10000;
    ledger_.SetBounds(total, container);
    account_.total_bound = total;
    account_.container_bound = container;
  }

  void Reserve() {
    const Charge charge = SomeCharge();
    const Bound expected =
        Total(charge) > UINT64_MAX
            ? Bound::kTotal
            : account_.Refuses(Total(charge), charge.container);
    const ReserveResult result = ledger_.Reserve(charge);
    ASSERT_EQ(result.refused_by, expected);
    if (!result.ok()) {
      ++account_.refused;
      return;
    }
    ++account_.granted;
    account_.Set(account_.total + Total(charge),
                 account_.container + charge.container);
    leases_.push_back(charge);
  }

  void Commit() {
    if (leases_.empty()) return;
    Charge& lease = leases_[random_() % leases_.size()];
    const Charge actual = SomeCharge();
    const Bound expected =
        Total(actual) > UINT64_MAX
            ? Bound::kTotal
            : account_.Refuses(Excess(Total(actual), Total(lease)),
                               Excess(actual.container, lease.container));
    const ReserveResult result = ledger_.Commit(lease, actual);
    ASSERT_EQ(result.refused_by, expected);
    if (!result.ok()) return;
    account_.Set(account_.total - Total(lease) + Total(actual),
                 account_.container - lease.container + actual.container);
    lease = actual;
  }

  void Release() {
    if (leases_.empty()) return;
    const size_t index = random_() % leases_.size();
    const Charge lease = leases_[index];
    leases_[index] = leases_.back();
    leases_.pop_back();
    ledger_.Release(lease);
    account_.Set(account_.total - Total(lease),
                 account_.container - lease.container);
  }

  std::mt19937_64 random_;
  LedgerState state_{};
  Ledger ledger_{&state_};
  Account account_;
  std::vector<Charge> leases_;
};

TEST(LedgerProperty, AgreesWithAPlainAccount) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Walk walk(seed);
    for (int step = 0; step < 2000; ++step) {
      walk.Step();
      walk.ExpectSame();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace purser::ledger
