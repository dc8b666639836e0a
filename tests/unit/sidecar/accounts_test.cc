// SPDX-License-Identifier: Apache-2.0
#include "sidecar/accounts.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

using Kind = ShareRefusal::Kind;

class AccountsTest : public testing::Test {
 protected:
  AccountsTest() {
    ledger::Ledger::Format(state_);
    ledger_.SetBounds(1000, ledger::kUnlimited);
  }
  Accounts With(ClassesConfig config) {
    EXPECT_TRUE(Complete(config).ok());
    return Accounts(ledger_, std::move(config));
  }
  // A core class with a floor, an ordinary one, and a client's guarantee.
  Accounts Usual() {
    return With({.classes = {{.name = "core", .floor = 0.2, .weight = 3},
                             {.name = "ordinary", .max_share = 0.6}},
                 .guarantees = {{"storage", 0.1}}});
  }
  static Owner Of(const char* class_name, const char* client = "app") {
    return {.class_name = class_name, .client = client};
  }
  static Kind Refused(Accounts& accounts, const Owner& owner, uint64_t bytes) {
    const Accounts::Result result = accounts.Reserve(owner, {.node = bytes});
    EXPECT_FALSE(result.ok());
    return result.share.kind;
  }
  static bool Takes(Accounts& accounts, const Owner& owner, uint64_t bytes) {
    return accounts.Reserve(owner, {.node = bytes}).ok();
  }

  ledger::LedgerState state_;
  ledger::Ledger ledger_{&state_};
};

TEST_F(AccountsTest, OneClassHasItAll) {
  Accounts accounts = With({});
  EXPECT_TRUE(Takes(accounts, {}, 1000));
  // The ledger's own refusal, with its figures.
  const Accounts::Result more = accounts.Reserve({}, {.node = 1});
  EXPECT_EQ(more.share.kind, Kind::kNone);
  EXPECT_EQ(more.ledger.refused_by, ledger::Bound::kTotal);
  accounts.Release({}, {.node = 1000});
  EXPECT_EQ(ledger_.balance().held.total(), 0u);
}

TEST_F(AccountsTest, WhatIsPromisedIsNeverGivenToAnother) {
  Accounts accounts = With({.classes = {{.name = "core", .floor = 0.2}},
                            .guarantees = {{"storage", 0.1}}});
  // Above its fair share: half of what is left, time and again.
  while (Takes(accounts, {}, 1)) continue;
  EXPECT_EQ(Refused(accounts, {}, 301), Kind::kPromised);
  EXPECT_GE(1000 - ledger_.balance().held.total(), 300u);
  // Each has what it was promised, whatever the others did.
  EXPECT_TRUE(Takes(accounts, Of("core"), 200));
  EXPECT_TRUE(Takes(accounts, Of("default", "storage"), 100));
}

TEST_F(AccountsTest, APromiseThatIsUsedIsNotKeptTwice) {
  Accounts accounts = With({.classes = {{.name = "core", .floor = 0.5}}});
  EXPECT_TRUE(Takes(accounts, Of("core"), 500));
  EXPECT_TRUE(Takes(accounts, {}, 250));
  EXPECT_EQ(accounts.HeadroomOf({}).total, 125u);
  accounts.Release(Of("core"), {.node = 500});
  // 250 are free of promises; of these half.
  EXPECT_EQ(accounts.HeadroomOf({}).total, 125u);
  EXPECT_EQ(accounts.HeadroomOf(Of("core")).total, 750u);
}

TEST_F(AccountsTest, AClassStaysBelowItsMaximum) {
  Accounts accounts = Usual();
  uint64_t taken = 0;
  for (uint64_t bytes = 600; bytes > 0; bytes /= 2)
    while (Takes(accounts, Of("ordinary"), bytes)) taken += bytes;
  EXPECT_LE(taken, 600u);
}

TEST_F(AccountsTest, TheMaximumIsNamed) {
  Accounts accounts =
      With({.classes = {{.name = "bulk", .max_share = 0.25, .weight = 1000}}});
  EXPECT_TRUE(Takes(accounts, Of("bulk"), 250));
  const Accounts::Result result = accounts.Reserve(Of("bulk"), {.node = 1});
  EXPECT_EQ(result.share.kind, Kind::kMaxShare);
  EXPECT_EQ(result.share.share, 250u);
  EXPECT_EQ(result.share.used, 250u);
}

TEST_F(AccountsTest, AboveItsFairShareAClassGetsHalfOfWhatIsLeft) {
  Accounts accounts = With({.classes = {{.name = "a", .weight = 2},
                                        {.name = "b", .weight = 1},
                                        {.name = "default", .weight = 1}}});
  EXPECT_TRUE(Takes(accounts, Of("a"), 500));
  EXPECT_TRUE(Takes(accounts, Of("a"), 250));
  EXPECT_EQ(Refused(accounts, Of("a"), 126), Kind::kFairShare);
  EXPECT_TRUE(Takes(accounts, Of("a"), 125));
  // Those below their share may have all that is left.
  EXPECT_TRUE(Takes(accounts, Of("b"), 125));
}

TEST_F(AccountsTest, SharesAreOfTheContainersBoundWhereThatIsTheOnlyOne) {
  ledger_.SetBounds(ledger::kUnlimited, 1000);
  Accounts accounts = With({.classes = {{.name = "core", .floor = 0.4}}});
  EXPECT_TRUE(accounts.Reserve({}, {.container = 300}).ok());
  EXPECT_TRUE(accounts.Reserve({}, {.node = 1'000'000}).ok());
  EXPECT_EQ(accounts.Reserve({}, {.container = 700}).share.kind,
            Kind::kPromised);
  EXPECT_EQ(accounts.HeadroomOf(Of("core")).container, 700u);
}

// The usual pod of a device that charges the container: units and a limit.
TEST_F(AccountsTest, SharesAreOfEachBound) {
  ledger_.SetBounds(10'000, 1000);
  Accounts accounts = With({.classes = {{.name = "core", .floor = 0.5}}});
  EXPECT_EQ(accounts.Reserve({}, {.container = 501}).share.kind,
            Kind::kPromised);
  EXPECT_TRUE(accounts.Reserve({}, {.container = 250, .node = 2000}).ok());
  EXPECT_TRUE(accounts.Reserve(Of("core"), {.container = 500}).ok());
  EXPECT_EQ(accounts.Use()[0].floor_bytes, 500u);
  EXPECT_EQ(accounts.HeadroomOf(Of("core")).total, 7000u) << "its fair share";
  EXPECT_EQ(accounts.HeadroomOf(Of("core")).container, 250u);
}

TEST_F(AccountsTest, AGuaranteeIsHadWhateverTheClassHolds) {
  Accounts accounts = With({.classes = {{.name = "default", .max_share = 0.2}},
                            .guarantees = {{"storage", 0.5}}});
  EXPECT_TRUE(Takes(accounts, Of("default"), 200));
  EXPECT_EQ(Refused(accounts, Of("default"), 1), Kind::kMaxShare);
  EXPECT_TRUE(Takes(accounts, Of("default", "storage"), 500));
}

// Leases of a process that died are returned within the ledger's own reserve.
class Undertaker final : public ledger::Gate {
 public:
  explicit Undertaker(ledger::LedgerState& state) : ledger_(&state) {}
  void SetBounds(uint64_t total, uint64_t container, uint64_t leases) override {
    ledger_.SetBounds(total, container, leases);
  }
  ledger::ReserveResult Reserve(ledger::Charge charge) override {
    leased_ = {};
    return ledger_.Reserve(charge);
  }
  ledger::ReserveResult Commit(ledger::Charge reserved,
                               ledger::Charge actual) override {
    return ledger_.Commit(reserved, actual);
  }
  void Release(ledger::Charge charge) override { ledger_.Release(charge); }
  ledger::Charge Leased() const override { return leased_; }

 private:
  ledger::Ledger ledger_;
  ledger::Charge leased_{.node = 900};
};

TEST(AccountsAndTheDeadTest, WhatTheDeadLeaveIsJudgedByShares) {
  ledger::LedgerState state;
  ledger::Ledger::Format(state);
  Undertaker undertaker(state);
  ledger::Ledger ledger(&state, &undertaker);
  ledger.SetBounds(1000, ledger::kUnlimited);
  ClassesConfig config{.classes = {{.name = "small", .max_share = 0.1},
                                   {.name = "core", .floor = 0.5}}};
  ASSERT_TRUE(Complete(config).ok());
  Accounts accounts(ledger, std::move(config));
  const Accounts::Result result =
      accounts.Reserve({.class_name = "small"}, {.node = 300});
  EXPECT_EQ(result.share.kind, Kind::kMaxShare);
  EXPECT_EQ(ledger.balance().held.total(), 0u);
  EXPECT_TRUE(accounts.Reserve({.class_name = "small"}, {.node = 100}).ok());
}

TEST_F(AccountsTest, AnUnlimitedBudgetHasNoShares) {
  ledger_.SetBounds(ledger::kUnlimited, ledger::kUnlimited);
  Accounts accounts = Usual();
  EXPECT_TRUE(Takes(accounts, Of("ordinary"), uint64_t{1} << 60));
}

TEST_F(AccountsTest, CommitMovesTheAccountToWhatWasAllocated) {
  Accounts accounts = With({.classes = {{.name = "core", .floor = 0.5}}});
  EXPECT_TRUE(Takes(accounts, Of("core"), 100));
  EXPECT_TRUE(accounts.Commit(Of("core"), {.node = 100}, {.node = 140}));
  EXPECT_EQ(accounts.Use()[0].used_bytes, 140u);
  EXPECT_EQ(ledger_.balance().held.node, 140u);
  EXPECT_FALSE(accounts.Commit(Of("core"), {.node = 140}, {.node = 2000}));
  EXPECT_EQ(accounts.Use()[0].used_bytes, 140u);
  accounts.Release(Of("core"), {.node = 140});
  EXPECT_EQ(accounts.Use()[0].used_bytes, 0u);
}

// Whatever happens, promises can be kept and nothing exceeds the budget.
TEST_F(AccountsTest, RandomUseKeepsEveryPromise) {
  Accounts accounts =
      With({.classes = {{.name = "core", .floor = 0.3, .weight = 3},
                        {.name = "bulk", .floor = 0.1, .max_share = 0.5}},
            .guarantees = {{"storage", 0.15}, {"cache", 0.05}}});
  const std::vector<Owner> owners = {
      Of("core"),           Of("bulk"),          Of("default"),
      Of("core", "cache"),  Of("bulk", "cache"), Of("default", "storage"),
      Of("core", "storage")};
  struct Lease {
    size_t owner;
    ledger::Charge charge;
  };
  std::vector<Lease> leases;
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    if (leases.empty() || random() % 5 < 3) {
      const size_t owner = random() % owners.size();
      const ledger::Charge charge{.container = random() % 20,
                                  .node = random() % 20};
      const uint64_t allowed = accounts.HeadroomOf(owners[owner]).total;
      const bool ok = accounts.Reserve(owners[owner], charge).ok();
      ASSERT_EQ(ok, charge.total() <= allowed);
      if (ok) leases.push_back({owner, charge});
    } else {
      std::swap(leases[random() % leases.size()], leases.back());
      accounts.Release(owners[leases.back().owner], leases.back().charge);
      leases.pop_back();
    }
    ASSERT_LE(ledger_.balance().held.total(), 1000u);
    // The floor of each class can be had by it now.
    for (const ClassUse& use : accounts.Use()) {
      // But for what clients were guaranteed.
      ASSERT_LE(use.used_bytes, use.max_bytes + 200);
      const uint64_t kept = std::max(use.floor_bytes, use.used_bytes);
      ASSERT_GE(accounts.HeadroomOf(Of(use.name.c_str())).total,
                kept - use.used_bytes);
    }
  }
  for (const Lease& lease : leases)
    accounts.Release(owners[lease.owner], lease.charge);
  EXPECT_EQ(ledger_.balance().held.total(), 0u);
  for (const ClassUse& use : accounts.Use()) EXPECT_EQ(use.used_bytes, 0u);
}

}  // namespace
}  // namespace purser::sidecar
