// SPDX-License-Identifier: Apache-2.0
#include "ledger/brokered_account.h"

#include <gtest/gtest.h>

#include "tests/unit/ledger/pod.h"

namespace purser::ledger {
namespace {

class BrokeredAccountTest : public testing::Test {
 protected:
  BrokeredAccountTest() { EXPECT_EQ(account().SetBounds(1000, 600), 0); }
  BrokeredAccount& account() { return pod_.account(); }
  uint64_t Published(uint32_t amount) {
    const uint32_t index = PURSER_LEDGER_BROKERED + amount;
    return Scribbler(pod_.path()).Read(index) & PURSER_LEDGER_MAX;
  }
  static void ExpectRefusal(const ReserveResult& result, Bound by,
                            uint64_t needed, uint64_t held, uint64_t bound) {
    EXPECT_EQ(result.refused_by, by);
    EXPECT_EQ(result.needed, needed);
    EXPECT_EQ(result.held, held);
    EXPECT_EQ(result.bound, bound);
  }
  Pod pod_;
};

TEST_F(BrokeredAccountTest, IsPublished) {
  ASSERT_TRUE(account().Reserve({100, 50}).ok());
  EXPECT_EQ(Published(0), 150u);
  EXPECT_EQ(Published(1), 100u);
  EXPECT_EQ(Published(2), 50u);
  EXPECT_EQ(Published(3), 1u);
  ASSERT_TRUE(account().Commit({100, 50}, {80, 60}).ok());
  EXPECT_EQ(Published(0), 140u);
  EXPECT_EQ(account().balance().held, (Charge{80, 60}));
  account().Release({80, 60});
  EXPECT_EQ(Published(0), 0u);
  EXPECT_EQ(Published(3), 0u);
}

TEST_F(BrokeredAccountTest, LeasesOfOthersLowerWhatIsLeft) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(400, 300), 0);
  ExpectRefusal(account().Reserve({0, 301}), Bound::kTotal, 301, 700, 1000);
  ExpectRefusal(account().Reserve({201, 0}), Bound::kContainer, 201, 400, 600);
  EXPECT_EQ(Published(0), 0u) << "refused claims are taken back";
  ASSERT_TRUE(account().Reserve({200, 100}).ok());
  EXPECT_EQ(client.Reserve(1, 0), EDQUOT);
  ExpectRefusal(account().Commit({200, 100}, {200, 101}), Bound::kTotal, 1,
                1000, 1000);
  EXPECT_EQ(account().balance().held, (Charge{200, 100}));
  EXPECT_TRUE(account().Commit({200, 100}, {100, 200}).ok())
      << "not more in all";
  EXPECT_EQ(client.Release(400, 300), 0);
  EXPECT_TRUE(account().Reserve({0, 700}).ok());
}

TEST_F(BrokeredAccountTest, QueuePairsOfOthersCount) {
  ASSERT_EQ(account().SetBounds(1000, 600, 3), 0);
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(1, 1, 2), 0);
  ASSERT_TRUE(account().Reserve({1, 1}).ok());
  ExpectRefusal(account().Reserve({1, 1}), Bound::kLeases, 1, 3, 3);
  EXPECT_EQ(client.Reserve(1, 1), EDQUOT);
  EXPECT_EQ(client.why().by, PURSER_LEDGER_QUEUE_PAIRS);
  EXPECT_TRUE(account().Commit({1, 1}, {2, 2}).ok()) << "no more of them";
  EXPECT_EQ(account().balance().leases, 1u);
}

TEST_F(BrokeredAccountTest, TheDeadDoNotDeny) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(400, 600), 0);
  client.Die();
  EXPECT_TRUE(account().Reserve({0, 1000}).ok());
  EXPECT_EQ(pod_.adjudicator().counts().reclaimed, 1u);
}

// Whatever the file says, the sidecar's own never exceeds the budget.
TEST_F(BrokeredAccountTest, NothingInTheFileRaisesTheBudget) {
  ASSERT_TRUE(account().Reserve({0, 900}).ok());
  Scribbler scribbler(pod_.path());
  const auto set = [&](uint32_t index, uint64_t value) {
    scribbler.Write(index, purser_ledger_encode(index, value));
  };
  set(PURSER_LEDGER_BUDGET, PURSER_LEDGER_MAX);
  set(PURSER_LEDGER_BROKERED, 0);
  ExpectRefusal(account().Reserve({0, 101}), Bound::kTotal, 101, 900, 1000);
  account().Adjudicate();
  EXPECT_TRUE(account().Reserve({0, 100}).ok());
}

TEST_F(BrokeredAccountTest, DamageThatCannotBeUndoneDenies) {
  Client client(pod_.path());
  Scribbler(pod_.path()).Write(client.Word(0), 0);
  pod_.Restart();
  ASSERT_EQ(account().SetBounds(1000, 600), 0);
  const ReserveResult result = account().Reserve({0, 1});
  EXPECT_EQ(result.refused_by, Bound::kTotal);
  EXPECT_GE(result.held, PURSER_LEDGER_MAX);
  client.Die();
  EXPECT_TRUE(account().Reserve({0, 1}).ok());
}

TEST_F(BrokeredAccountTest, AFileThatCannotBeWrittenDenies) {
  ASSERT_TRUE(account().Reserve({0, 10}).ok());
  {
    const NothingCanBeWritten full;
    EXPECT_FALSE(account().Reserve({0, 1}).ok());
    EXPECT_FALSE(account().Commit({0, 10}, {0, 11}).ok());
    EXPECT_TRUE(account().Commit({0, 10}, {0, 9}).ok());
    account().Release({0, 9});
  }
  EXPECT_EQ(account().balance().held, Charge());
  account().Adjudicate();
  EXPECT_EQ(Published(0), 0u);
  EXPECT_TRUE(account().Reserve({0, 1000}).ok());
}

TEST_F(BrokeredAccountTest, WithoutBoundsTheFileDoesNotMatter) {
  ASSERT_EQ(account().SetBounds(kUnlimited, kUnlimited), 0);
  const NothingCanBeWritten full;
  EXPECT_TRUE(account().Reserve({1 << 30, 1 << 30}).ok());
}

TEST_F(BrokeredAccountTest, ChargesNear64Bits) {
  EXPECT_FALSE(account().Reserve({UINT64_MAX, 1}).ok());
  EXPECT_FALSE(account().Reserve({0, UINT64_MAX}).ok());
  ASSERT_TRUE(account().Reserve({1, 1}).ok());
  EXPECT_FALSE(account().Commit({1, 1}, {UINT64_MAX, UINT64_MAX}).ok());
  EXPECT_FALSE(account().Commit({1, 1}, {0, UINT64_MAX}).ok());
  EXPECT_EQ(account().balance().held, (Charge{1, 1}));
  EXPECT_EQ(Published(0), 2u);
}

}  // namespace
}  // namespace purser::ledger
