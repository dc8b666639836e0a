// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger.h"

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

namespace purser::ledger {

std::ostream& operator<<(std::ostream& out, const Charge& charge) {
  return out << "{container " << charge.container << ", node " << charge.node
             << "}";
}

namespace {

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() { Ledger::Format(state_); }

  void ExpectRefusal(const ReserveResult& result, Bound bound, uint64_t needed,
                     uint64_t held, uint64_t limit) {
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.refused_by, bound);
    EXPECT_EQ(result.needed, needed);
    EXPECT_EQ(result.held, held);
    EXPECT_EQ(result.bound, limit);
  }

  LedgerState state_{};
  Ledger ledger_{&state_};
};

TEST_F(LedgerTest, FormatMakesAnEmptyAccountWithoutBounds) {
  ledger_.SetBounds(1, 1);
  ASSERT_TRUE(ledger_.Reserve({0, 1}).ok());
  Ledger::Format(state_);
  EXPECT_EQ(state_.magic, kMagic);
  EXPECT_EQ(state_.version, kVersion);
  EXPECT_EQ(state_.size_bytes, sizeof(LedgerState));
  const Balance balance = ledger_.balance();
  EXPECT_EQ(balance.held, Charge());
  EXPECT_EQ(balance.total_bound, kUnlimited);
  EXPECT_EQ(balance.container_bound, kUnlimited);
  EXPECT_EQ(balance.leases, 0u);
  EXPECT_EQ(balance.reserves_granted, 0u);
  EXPECT_EQ(balance.reserves_refused, 0u);
  EXPECT_EQ(balance.peak_total_held, 0u);
}

// The counters lie where version 1 says, for whoever maps them.
TEST_F(LedgerTest, LayoutOfVersion1) {
  ledger_.SetBounds(1000, 900);
  ASSERT_TRUE(ledger_.Reserve({30, 12}).ok());
  uint64_t words[sizeof(LedgerState) / 8];
  static_assert(sizeof(words) == 256);
  std::memcpy(words, static_cast<const void*>(&state_), sizeof(words));
  EXPECT_EQ(words[0], uint64_t{1} << 32 | 0x50555253);
  EXPECT_EQ(words[1], 256u);
  EXPECT_EQ(words[8], 1000u);
  EXPECT_EQ(words[9], 900u);
  EXPECT_EQ(words[16], 42u);
  EXPECT_EQ(words[17], 30u);
  EXPECT_EQ(words[24], 1u);
  EXPECT_EQ(words[25], 1u);
  EXPECT_EQ(words[26], 0u);
  EXPECT_EQ(words[27], 42u);
}

TEST_F(LedgerTest, ReserveUpToTheBoundAndNotAByteMore) {
  ledger_.SetBounds(100, kUnlimited);
  EXPECT_TRUE(ledger_.Reserve({40, 20}).ok());
  ExpectRefusal(ledger_.Reserve({1, 40}), Bound::kTotal, 41, 60, 100);
  EXPECT_TRUE(ledger_.Reserve({0, 40}).ok());
  ExpectRefusal(ledger_.Reserve({1, 0}), Bound::kTotal, 1, 100, 100);
  const Balance balance = ledger_.balance();
  EXPECT_EQ(balance.held, (Charge{40, 60}));
  EXPECT_EQ(balance.leases, 2u);
  EXPECT_EQ(balance.reserves_granted, 2u);
  EXPECT_EQ(balance.reserves_refused, 2u);
  EXPECT_EQ(balance.peak_total_held, 100u);
}

TEST_F(LedgerTest, TheContainerBoundCountsContainerBytesAlone) {
  ledger_.SetBounds(1000, 100);
  EXPECT_TRUE(ledger_.Reserve({90, 500}).ok());
  ExpectRefusal(ledger_.Reserve({11, 0}), Bound::kContainer, 11, 90, 100);
  EXPECT_EQ(ledger_.balance().held, (Charge{90, 500}));
  EXPECT_TRUE(ledger_.Reserve({10, 0}).ok());
  EXPECT_TRUE(ledger_.Reserve({0, 400}).ok());
  EXPECT_EQ(ledger_.balance().held, (Charge{100, 900}));
}

// A refusal by the container's bound gives back what the total had taken.
TEST_F(LedgerTest, ARefusedReserveChangesNothing) {
  ledger_.SetBounds(1000, 100);
  ASSERT_TRUE(ledger_.Reserve({100, 0}).ok());
  ExpectRefusal(ledger_.Reserve({1, 700}), Bound::kContainer, 1, 100, 100);
  EXPECT_EQ(ledger_.balance().held, (Charge{100, 0}));
  EXPECT_EQ(ledger_.balance().leases, 1u);
  EXPECT_EQ(ledger_.balance().peak_total_held, 100u);
  EXPECT_TRUE(ledger_.Reserve({0, 900}).ok());
}

TEST_F(LedgerTest, ReleaseReturnsTheBytesAndEndsTheLease) {
  ledger_.SetBounds(100, 100);
  ASSERT_TRUE(ledger_.Reserve({60, 40}).ok());
  ledger_.Release({60, 40});
  EXPECT_EQ(ledger_.balance().held, Charge());
  EXPECT_EQ(ledger_.balance().leases, 0u);
  EXPECT_EQ(ledger_.balance().peak_total_held, 100u);
  EXPECT_TRUE(ledger_.Reserve({100, 0}).ok());
}

TEST_F(LedgerTest, ReleasingMoreThanIsHeldNeverWraps) {
  ASSERT_TRUE(ledger_.Reserve({10, 10}).ok());
  ledger_.Release({20, 20});
  ledger_.Release({1, 1});
  EXPECT_EQ(ledger_.balance().held, Charge());
  EXPECT_EQ(ledger_.balance().leases, 0u);
  ledger_.SetBounds(5, 5);
  EXPECT_TRUE(ledger_.Reserve({5, 0}).ok());
}

TEST_F(LedgerTest, ABoundLoweredBelowWhatIsHeld) {
  ASSERT_TRUE(ledger_.Reserve({50, 50}).ok());
  ASSERT_TRUE(ledger_.Reserve({10, 0}).ok());
  ledger_.SetBounds(80, 40);
  EXPECT_EQ(ledger_.balance().held, (Charge{60, 50}));
  ExpectRefusal(ledger_.Reserve({0, 1}), Bound::kTotal, 1, 110, 80);
  ledger_.SetBounds(kUnlimited, 40);
  ExpectRefusal(ledger_.Reserve({1, 0}), Bound::kContainer, 1, 60, 40);
  ledger_.Release({50, 50});
  EXPECT_TRUE(ledger_.Reserve({30, 0}).ok());
  ExpectRefusal(ledger_.Reserve({1, 0}), Bound::kContainer, 1, 40, 40);
}

// A lease can shrink even while more is held than the bounds allow.
TEST_F(LedgerTest, CommitDownUnderALoweredBound) {
  ASSERT_TRUE(ledger_.Reserve({50, 50}).ok());
  ledger_.SetBounds(10, 10);
  EXPECT_TRUE(ledger_.Commit({50, 50}, {20, 30}).ok());
  EXPECT_EQ(ledger_.balance().held, (Charge{20, 30}));
}

TEST_F(LedgerTest, CommitLessReturnsTheDifference) {
  ledger_.SetBounds(100, 100);
  ASSERT_TRUE(ledger_.Reserve({60, 40}).ok());
  EXPECT_TRUE(ledger_.Commit({60, 40}, {30, 20}).ok());
  const Balance balance = ledger_.balance();
  EXPECT_EQ(balance.held, (Charge{30, 20}));
  EXPECT_EQ(balance.leases, 1u);
  EXPECT_EQ(balance.reserves_granted, 1u);
}

TEST_F(LedgerTest, CommitMoreReservesTheDifference) {
  ledger_.SetBounds(100, 80);
  ASSERT_TRUE(ledger_.Reserve({30, 20}).ok());
  EXPECT_TRUE(ledger_.Commit({30, 20}, {80, 20}).ok());
  EXPECT_EQ(ledger_.balance().held, (Charge{80, 20}));
  EXPECT_EQ(ledger_.balance().peak_total_held, 100u);
  EXPECT_EQ(ledger_.balance().leases, 1u);
}

TEST_F(LedgerTest, ARefusedCommitLeavesTheReservation) {
  ledger_.SetBounds(100, 50);
  ASSERT_TRUE(ledger_.Reserve({30, 20}).ok());
  ExpectRefusal(ledger_.Commit({30, 20}, {30, 71}), Bound::kTotal, 51, 50, 100);
  ExpectRefusal(ledger_.Commit({30, 20}, {51, 20}), Bound::kContainer, 21, 30,
                50);
  // The total would shrink; the container's part alone is too much.
  ExpectRefusal(ledger_.Commit({30, 20}, {60, 0}), Bound::kContainer, 30, 30,
                50);
  EXPECT_EQ(ledger_.balance().held, (Charge{30, 20}));
  EXPECT_EQ(ledger_.balance().reserves_refused, 0u);
  ledger_.Release({30, 20});
  EXPECT_EQ(ledger_.balance().held, Charge());
}

// From one payer to the other: one counter grows, the other shrinks or stays.
TEST_F(LedgerTest, CommitMovesBytesBetweenPayers) {
  ledger_.SetBounds(50, 30);
  ASSERT_TRUE(ledger_.Reserve({30, 20}).ok());
  EXPECT_TRUE(ledger_.Commit({30, 20}, {0, 50}).ok());
  EXPECT_EQ(ledger_.balance().held, (Charge{0, 50}));
  EXPECT_TRUE(ledger_.Commit({0, 50}, {30, 10}).ok());
  EXPECT_EQ(ledger_.balance().held, (Charge{30, 10}));
  EXPECT_TRUE(ledger_.Commit({30, 10}, {5, 45}).ok());
  EXPECT_EQ(ledger_.balance().held, (Charge{5, 45}));
}

TEST_F(LedgerTest, ChargesNear64BitsNeverWrap) {
  ASSERT_TRUE(ledger_.Reserve({0, 100}).ok());
  ExpectRefusal(ledger_.Reserve({0, UINT64_MAX}), Bound::kTotal, UINT64_MAX,
                100, kUnlimited);
  ExpectRefusal(ledger_.Reserve({UINT64_MAX, UINT64_MAX}), Bound::kTotal,
                UINT64_MAX, 100, kUnlimited);
  ExpectRefusal(ledger_.Reserve({UINT64_MAX, 1}), Bound::kTotal, UINT64_MAX,
                100, kUnlimited);
  ExpectRefusal(ledger_.Commit({0, 100}, {UINT64_MAX, 1}), Bound::kTotal,
                UINT64_MAX, 100, kUnlimited);
  EXPECT_EQ(ledger_.balance().held, (Charge{0, 100}));
  EXPECT_TRUE(ledger_.Reserve({0, UINT64_MAX - 100}).ok());
  ExpectRefusal(ledger_.Reserve({0, 1}), Bound::kTotal, 1, UINT64_MAX,
                kUnlimited);
  ledger_.Release({0, UINT64_MAX - 100});
  EXPECT_EQ(ledger_.balance().held, (Charge{0, 100}));
}

TEST_F(LedgerTest, NothingIsALeaseToo) {
  ledger_.SetBounds(0, 0);
  EXPECT_TRUE(ledger_.Reserve({0, 0}).ok());
  EXPECT_EQ(ledger_.balance().leases, 1u);
  ExpectRefusal(ledger_.Reserve({0, 1}), Bound::kTotal, 1, 0, 0);
  ledger_.SetBounds(1, 0);
  ExpectRefusal(ledger_.Reserve({1, 0}), Bound::kContainer, 1, 0, 0);
}

TEST_F(LedgerTest, CopiesViewTheSameAccount) {
  Ledger other{nullptr};
  other = ledger_;
  ASSERT_TRUE(other.Reserve({1, 2}).ok());
  EXPECT_EQ(ledger_.balance().held, (Charge{1, 2}));
}

TEST(LeaseBoundTest, BoundsTheNumberOfLeases) {
  LedgerState state;
  Ledger::Format(state);
  Ledger ledger(&state);
  EXPECT_EQ(ledger.balance().lease_bound, kUnlimited);
  ledger.SetBounds(1000, kUnlimited, 2);
  EXPECT_TRUE(ledger.Reserve({.container = 1}).ok());
  EXPECT_TRUE(ledger.Reserve({.node = 1}).ok());
  const ReserveResult refused = ledger.Reserve({.node = 1});
  EXPECT_EQ(refused.refused_by, Bound::kLeases);
  EXPECT_EQ(refused.needed, 1u);
  EXPECT_EQ(refused.held, 2u);
  EXPECT_EQ(refused.bound, 2u);
  EXPECT_EQ(ledger.balance().held.total(), 2u);
  ledger.Release({.node = 1});
  // A refusal by the bytes holds no lease.
  EXPECT_EQ(ledger.Reserve({.node = 2000}).refused_by, Bound::kTotal);
  EXPECT_EQ(ledger.balance().leases, 1u);
  EXPECT_TRUE(ledger.Reserve({.node = 1}).ok());
}

// What it was asked for last, and an answer.
class FakeGate final : public Gate {
 public:
  void SetBounds(uint64_t total, uint64_t container, uint64_t leases) override {
    last = {total, container};
    last_leases = leases;
  }
  ReserveResult Reserve(Charge charge) override {
    last = charge;
    return {Bound::kTotal, 1, 2, 3};
  }
  ReserveResult Commit(Charge reserved, Charge actual) override {
    last = {reserved.container, actual.node};
    return {Bound::kContainer, 1, 2, 3};
  }
  void Release(Charge charge) override { last = charge; }
  Charge Leased() const override { return {5, 7}; }
  Charge last;
  uint64_t last_leases = 0;
};

TEST_F(LedgerTest, AGateIsAskedInstead) {
  ASSERT_TRUE(ledger_.Reserve({1, 2}).ok());
  FakeGate gate;
  Ledger gated(&state_, &gate);
  ExpectRefusal(gated.Reserve({8, 9}), Bound::kTotal, 1, 2, 3);
  EXPECT_EQ(gate.last, (Charge{8, 9}));
  ExpectRefusal(gated.Commit({8, 0}, {0, 10}), Bound::kContainer, 1, 2, 3);
  EXPECT_EQ(gate.last, (Charge{8, 10}));
  gated.Release({11, 12});
  EXPECT_EQ(gate.last, (Charge{11, 12}));
  gated.SetBounds(13, 14, 15);
  EXPECT_EQ(gate.last, (Charge{13, 14}));
  EXPECT_EQ(gate.last_leases, 15u);
  EXPECT_EQ(gated.balance().held, (Charge{6, 9})) << "with what others hold";
  EXPECT_EQ(ledger_.balance().held, (Charge{1, 2}));
}

}  // namespace
}  // namespace purser::ledger
