// SPDX-License-Identifier: Apache-2.0
//
// The C header, as an application uses it.
#include "ledger/purser_ledger.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "tests/unit/ledger/pod.h"

namespace purser::ledger {
namespace {

constexpr uint64_t kMax = (uint64_t{1} << 48) - 1;

class PurserLedgerTest : public testing::Test {
 protected:
  PurserLedgerTest() { pod_.SetBudget({1000, 600, 700, 5}); }
  Amounts Held() { return pod_.adjudicator().Look().held; }
  static void ExpectRefusal(const Client& client, purser_ledger_amount by,
                            uint64_t needed, uint64_t held, uint64_t bound) {
    EXPECT_EQ(client.why().by, by);
    EXPECT_EQ(client.why().needed, needed);
    EXPECT_EQ(client.why().held, held);
    EXPECT_EQ(client.why().bound, bound);
  }
  Pod pod_;
};

TEST_F(PurserLedgerTest, ReserveCommitRelease) {
  Client client(pod_.path());
  ASSERT_EQ(client.error(), 0);
  ASSERT_EQ(client.Reserve(100, 200), 0);
  EXPECT_EQ(Held(), (Amounts{300, 100, 200, 1}));
  ASSERT_EQ(client.Commit({100, 200}, {100, 200}), 0);
  EXPECT_EQ(Held(), (Amounts{300, 100, 200, 1}));
  ASSERT_EQ(client.Commit({100, 200}, {150, 180}), 0);
  EXPECT_EQ(Held(), (Amounts{330, 150, 180, 1}));
  ASSERT_EQ(client.Release(150, 180), 0);
  EXPECT_EQ(Held(), Amounts{});
}

TEST_F(PurserLedgerTest, EachBoundRefusesWithItsFigures) {
  Client one(pod_.path()), two(pod_.path());
  ASSERT_EQ(one.Reserve(400, 300), 0);
  EXPECT_EQ(two.Reserve(201, 0), EDQUOT);
  ExpectRefusal(two, PURSER_LEDGER_CONTAINER_BYTES, 201, 400, 600);
  EXPECT_EQ(two.Reserve(150, 200), EDQUOT);
  ExpectRefusal(two, PURSER_LEDGER_ALL_BYTES, 350, 700, 1000);
  pod_.SetBudget({2000, 600, 700, 5});
  EXPECT_EQ(two.Reserve(0, 401), EDQUOT);
  ExpectRefusal(two, PURSER_LEDGER_NODE_BYTES, 401, 300, 700);
  EXPECT_EQ(two.Reserve(1, 1, 5), EDQUOT);
  ExpectRefusal(two, PURSER_LEDGER_QUEUE_PAIRS, 5, 1, 5);
  EXPECT_EQ(Held(), (Amounts{700, 400, 300, 1})) << "refusals cost nothing";
  EXPECT_EQ(two.Reserve(200, 400, 4), 0) << "to the last byte of each";
  EXPECT_EQ(Held(), (Amounts{1300, 600, 700, 5}));
  EXPECT_EQ(pod_.adjudicator().counts().granted, 2u);
  EXPECT_EQ(pod_.adjudicator().counts().refused, 4u);
}

TEST_F(PurserLedgerTest, WithoutBoundsEverythingFits) {
  pod_.SetBudget({kMax, kUnlimited, kMax, kMax});
  Client client(pod_.path());
  EXPECT_EQ(client.Reserve(kMax / 2, kMax / 2), 0);
}

TEST_F(PurserLedgerTest, TheSidecarsOwnCount) {
  ASSERT_EQ(pod_.adjudicator().Publish({900, 500, 400, 3}), 0);
  Client client(pod_.path());
  EXPECT_EQ(client.Reserve(101, 0), EDQUOT);
  ExpectRefusal(client, PURSER_LEDGER_ALL_BYTES, 101, 900, 1000);
  EXPECT_EQ(client.Reserve(100, 0), 0);
}

TEST_F(PurserLedgerTest, ABoundBelowWhatIsHeld) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(400, 400), 0);
  pod_.SetBudget({100, 100, 100, 0});
  EXPECT_EQ(client.Reserve(1, 0, 0), EDQUOT);
  ExpectRefusal(client, PURSER_LEDGER_ALL_BYTES, 1, 800, 100);
  EXPECT_EQ(client.Commit({400, 400}, {50, 400}), 0) << "less is no growth";
  EXPECT_EQ(client.Commit({50, 400}, {60, 390}), 0)
      << "60 container-charged bytes of 100";
  EXPECT_EQ(client.Reserve(0, 0, 0), 0);
  EXPECT_EQ(client.Release(60, 390), 0);
  EXPECT_EQ(Held(), Amounts{});
}

TEST_F(PurserLedgerTest, ARefusedCommitLeavesTheReservation) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(500, 100), 0);
  EXPECT_EQ(client.Commit({500, 100}, {601, 0}), EDQUOT);
  ExpectRefusal(client, PURSER_LEDGER_CONTAINER_BYTES, 101, 500, 600);
  EXPECT_EQ(client.Commit({500, 100}, {500, 501}), EDQUOT);
  EXPECT_EQ(Held(), (Amounts{600, 500, 100, 1}));
  const purser_ledger_charge reserved = {500, 100, 1}, actual = {500, 100, 6};
  EXPECT_EQ(purser_ledger_commit(&client.ledger(), &reserved, &actual, nullptr),
            EDQUOT);
  EXPECT_EQ(Held(), (Amounts{600, 500, 100, 1}));
}

TEST_F(PurserLedgerTest, AmountsBeyondWhatAWordHolds) {
  pod_.SetBudget({kMax, kMax, kMax, kMax});
  Client client(pod_.path());
  EXPECT_EQ(client.Reserve(kMax + 1, 0), EINVAL);
  EXPECT_EQ(client.Reserve(0, kMax + 1), EINVAL);
  EXPECT_EQ(client.Reserve(kMax, 1), EINVAL);
  EXPECT_EQ(client.Reserve(UINT64_MAX, UINT64_MAX), EINVAL);
  EXPECT_EQ(client.Reserve(1, 1, kMax + 1), EINVAL);
  EXPECT_EQ(client.Release(kMax, 1), EINVAL);
  EXPECT_EQ(client.Commit({1, 1}, {kMax, 1}), EINVAL);
  EXPECT_EQ(client.Commit({kMax, 1}, {1, 1}), EINVAL);
  ASSERT_EQ(client.Reserve(10, 20), 0);
  EXPECT_EQ(client.Reserve(kMax - 20, 0), EINVAL) << "with what is held";
  EXPECT_EQ(client.Reserve(0, 0, kMax), EINVAL);
  EXPECT_EQ(Held(), (Amounts{30, 10, 20, 1}));
}

TEST_F(PurserLedgerTest, NothingFallsBelowZero) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 10), 0);
  EXPECT_EQ(client.Release(20, 20, 7), 0);
  EXPECT_EQ(Held(), Amounts{});
  EXPECT_EQ(client.Reserve(600, 400), 0);
}

TEST_F(PurserLedgerTest, DetachReturnsTheSlotAndItsCounts) {
  Client client(pod_.path());
  const uint32_t slot = client.ledger().slot;
  ASSERT_EQ(client.Reserve(10, 10), 0);
  EXPECT_EQ(client.Reserve(1000, 10), EDQUOT);
  client.Detach();
  client.Detach();
  const Findings findings = pod_.adjudicator().Adjudicate();
  EXPECT_EQ(findings.leases.slots_taken, 0u);
  EXPECT_EQ(findings.reclaimed, 0u);
  EXPECT_EQ(findings.repaired, 0u);
  EXPECT_EQ(findings.leases.held, Amounts{});
  EXPECT_EQ(pod_.adjudicator().counts().granted, 1u);
  EXPECT_EQ(pod_.adjudicator().counts().refused, 1u);
  Client next(pod_.path());
  EXPECT_EQ(next.ledger().slot, slot);
  EXPECT_NE(next.ledger().state, 1u) << "a state of its own";
}

TEST_F(PurserLedgerTest, AllSlotsTakenThenOneOfTheDead) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < PURSER_LEDGER_SLOTS; ++i) {
    clients.push_back(std::make_unique<Client>(pod_.path()));
    ASSERT_EQ(clients.back()->error(), 0);
  }
  ASSERT_EQ(clients[77]->Reserve(100, 100), 0);
  EXPECT_EQ(Client(pod_.path()).error(), EUSERS);
  clients[77]->Die();
  Client heir(pod_.path());
  ASSERT_EQ(heir.error(), 0);
  EXPECT_EQ(heir.ledger().slot, 77u);
  EXPECT_EQ(Held(), Amounts{}) << "what the dead held is not the heir's";
  EXPECT_EQ(pod_.adjudicator().Adjudicate().repaired, 0u);
  EXPECT_EQ(pod_.adjudicator().counts().granted, 1u);
}

// Slots of the dead wait for the sidecar while there are others.
TEST_F(PurserLedgerTest, FreeSlotsFirst) {
  auto first = std::make_unique<Client>(pod_.path());
  first->Die();
  EXPECT_EQ(Client(pod_.path()).ledger().slot, 1u);
}

TEST_F(PurserLedgerTest, WhatAttachFinds) {
  EXPECT_EQ(Client(pod_.volume().path("none")).error(), ENOENT);
  EXPECT_EQ(Client(pod_.volume().root()).error(), EISDIR);
  std::filesystem::create_symlink(kFileName, pod_.volume().path("link"));
  EXPECT_EQ(Client(pod_.volume().path("link")).error(), ELOOP);
  Scribbler scribbler(pod_.path());
  scribbler.Write(1, 2);
  EXPECT_EQ(Client(pod_.path()).error(), EBADMSG) << "damage";
  scribbler.Write(PURSER_LEDGER_CHECKED_VERSION,
                  purser_ledger_encode(PURSER_LEDGER_CHECKED_VERSION, 2));
  EXPECT_EQ(Client(pod_.path()).error(), EPROTONOSUPPORT);
  scribbler.Write(5, 2);
  scribbler.Write(1, 1);
  EXPECT_EQ(Client(pod_.path()).error(), EBADMSG);
  scribbler.Write(0, 2);
  EXPECT_EQ(Client(pod_.path()).error(), EBADMSG);
  scribbler.Truncate(PURSER_LEDGER_BYTES - 1);
  EXPECT_EQ(Client(pod_.path()).error(), ENODATA);
  pod_.adjudicator().Adjudicate();
  EXPECT_EQ(Client(pod_.path()).error(), 0);
}

TEST_F(PurserLedgerTest, ATruncatedFileIsNoticedBeforeItIsTouched) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 10), 0);
  EXPECT_EQ(Held(), (Amounts{20, 10, 10, 1}));
  Scribbler(pod_.path()).Truncate(0);
  EXPECT_EQ(client.Reserve(1, 1), ENODATA);
  EXPECT_EQ(client.Commit({10, 10}, {1, 1}), ENODATA);
  EXPECT_EQ(client.Release(10, 10), ENODATA);
  pod_.adjudicator().Adjudicate();
  EXPECT_EQ(client.Release(10, 10), 0);
  Scribbler(pod_.path()).Truncate(0);
  client.Detach();
}

// A damaged word anywhere in what a reserve reads denies it and changes
// nothing; releases need their own slot alone.
TEST_F(PurserLedgerTest, DamageDenies) {
  Client client(pod_.path()), other(pod_.path());
  ASSERT_EQ(client.Reserve(10, 10), 0);
  Scribbler scribbler(pod_.path());
  struct Word {
    uint32_t index;
    int release, commit;
  };
  for (const Word& word : {
           Word{PURSER_LEDGER_BUDGET + 0, 0, EUCLEAN},
           Word{PURSER_LEDGER_BUDGET + 3, 0, EUCLEAN},
           Word{PURSER_LEDGER_BROKERED + 2, 0, EUCLEAN},
           Word{PURSER_LEDGER_STATES + 200, 0, EUCLEAN},
           Word{other.Word(1), 0, EUCLEAN},
           Word{client.Word(0), EUCLEAN, EUCLEAN},
           Word{client.Word(2), EUCLEAN, EUCLEAN},
           Word{client.Word(PURSER_LEDGER_BEGUN), 0, EUCLEAN},
       }) {
    SCOPED_TRACE(word.index);
    const uint64_t before = scribbler.Read(word.index);
    scribbler.Write(word.index, 0);
    EXPECT_EQ(client.Reserve(1, 1), EUCLEAN);
    EXPECT_EQ(client.Commit({1, 1}, {2, 1}), word.commit);
    EXPECT_EQ(client.Release(1, 1, 0), word.release);
    scribbler.Write(word.index, before);
    ASSERT_EQ(client.Reserve(1, 1, 0), 0);
    client.Detach();
    ASSERT_EQ(purser_ledger_attach(&client.ledger(), pod_.path().c_str()), 0);
    ASSERT_EQ(client.Reserve(10, 10), 0);
  }
  EXPECT_EQ(Held(), (Amounts{20, 10, 10, 1}));
}

// The holder knows it.
TEST_F(PurserLedgerTest, ADamagedStateOfItsOwnIsWrittenAgain) {
  Client client(pod_.path());
  Scribbler(pod_.path()).Write(client.State(), 0);
  EXPECT_EQ(client.Reserve(1, 1), 0);
  Scribbler(pod_.path()).Write(client.State(), 0);
  client.Detach();
  EXPECT_EQ(pod_.adjudicator().Adjudicate().repaired, 0u);
}

// It is all or nothing, so trying it again returns nothing twice.
TEST_F(PurserLedgerTest, AReleaseThatMetDamageIsTriedAgain) {
  for (const int word : {0, 1, 2, 3}) {
    Client client(pod_.path());
    ASSERT_EQ(client.Reserve(10, 10), 0);
    ASSERT_EQ(client.Reserve(30, 40), 0);
    Scribbler scribbler(pod_.path());
    const uint64_t before = scribbler.Read(client.Word(word));
    scribbler.Write(client.Word(word), 0);
    EXPECT_EQ(client.Release(10, 10), EUCLEAN);
    EXPECT_EQ(client.Commit({30, 40}, {20, 50}), EUCLEAN);
    scribbler.Write(client.Word(word), before);
    EXPECT_EQ(Held(), (Amounts{90, 40, 50, 2}));
    EXPECT_EQ(client.Release(10, 10), 0);
    EXPECT_EQ(Held(), (Amounts{70, 30, 40, 1}));
    client.Detach();
  }
}

TEST_F(PurserLedgerTest, WhatIsUnknownStaysSo) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 10), 0);
  Scribbler scribbler(pod_.path());
  scribbler.Write(client.Word(0), purser_ledger_encode(client.Word(0), kMax));
  EXPECT_EQ(client.Reserve(10, 10), EDQUOT);
  EXPECT_EQ(client.Commit({10, 10}, {10, 20}), EDQUOT);
  EXPECT_EQ(client.Release(10, 10), 0);
  EXPECT_EQ(Held(), (Amounts{kMax, 0, 0, 0}));
  client.Detach();
  EXPECT_EQ(Held(), Amounts{});
}

TEST_F(PurserLedgerTest, ASlotThatIsNotItsOwnAnyMore) {
  Client client(pod_.path());
  Scribbler(pod_.path())
      .Write(client.State(), purser_ledger_encode(client.State(), 9));
  EXPECT_EQ(client.Reserve(1, 1), ESTALE);
  EXPECT_EQ(client.Commit({1, 1}, {1, 2}), ESTALE);
  EXPECT_EQ(client.Release(1, 1), ESTALE);
  client.Detach();
  EXPECT_EQ(pod_.adjudicator().Adjudicate().leases.slots_taken, 0u);
}

// The handle is shared by the threads of a process; two processes compete.
TEST_F(PurserLedgerTest, ManyThreadsOnTwoSlotsEndAtZero) {
  pod_.SetBudget({1000, 1000, 1000, 12});
  Client one(pod_.path()), two(pod_.path());
  std::vector<std::thread> threads;
  std::atomic<uint64_t> growths = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      purser_ledger& ledger = i % 2 == 0 ? one.ledger() : two.ledger();
      const purser_ledger_charge small = {50, 60, 1}, large = {90, 20, 2};
      for (int round = 0; round < 3000; ++round) {
        if (purser_ledger_reserve(&ledger, &small, nullptr) != 0) continue;
        ++growths;
        const bool grown =
            purser_ledger_commit(&ledger, &small, &large, nullptr) == 0;
        purser_ledger_release(&ledger, grown ? &large : &small);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Held(), Amounts{});
  const Counts counts = pod_.adjudicator().counts();
  EXPECT_EQ(counts.granted + counts.refused, 24000u + growths);
  EXPECT_GT(counts.granted, 0u);
}

// Leases of which no two fit together exclude one another.
TEST_F(PurserLedgerTest, OneOfTwoThatDoNotFitTogether) {
  Client one(pod_.path()), two(pod_.path());
  std::atomic<int> inside = 0, most = 0, granted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      purser_ledger& ledger = i % 2 == 0 ? one.ledger() : two.ledger();
      const purser_ledger_charge charge = {300, 300, 1};
      for (int round = 0; round < 5000; ++round) {
        if (purser_ledger_reserve(&ledger, &charge, nullptr) != 0) continue;
        ++granted;
        const int now = ++inside;
        if (now > most) most = now;
        --inside;
        purser_ledger_release(&ledger, &charge);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_GT(granted, 0);
}

}  // namespace
}  // namespace purser::ledger
