// SPDX-License-Identifier: Apache-2.0
#include "ledger/adjudicator.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/ledger/pod.h"

namespace purser::ledger {
namespace {

constexpr uint64_t kMax = PURSER_LEDGER_MAX;

class AdjudicatorTest : public testing::Test {
 protected:
  AdjudicatorTest() { pod_.SetBudget({1000, 1000, 1000, 100}); }
  Findings Round() { return pod_.adjudicator().Adjudicate(); }
  Leases Look() { return pod_.adjudicator().Look(); }
  void ExpectQuiet() {
    const Findings findings = Round();
    EXPECT_EQ(findings.repaired, 0u);
    EXPECT_EQ(findings.reclaimed, 0u);
    EXPECT_EQ(findings.error, 0);
    EXPECT_FALSE(findings.displaced);
  }
  Pod pod_;
};

TEST_F(AdjudicatorTest, FindsNothingInASoundLedger) {
  ExpectQuiet();
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  ExpectQuiet();
  EXPECT_EQ(Round().leases.slots_taken, 1u);
  EXPECT_EQ(Round().leases.held, (Amounts{30, 10, 20, 1}));
}

TEST_F(AdjudicatorTest, FreesTheSlotsOfTheDead) {
  Client living(pod_.path()), dead(pod_.path());
  ASSERT_EQ(living.Reserve(10, 20), 0);
  ASSERT_EQ(dead.Reserve(100, 200), 0);
  EXPECT_EQ(dead.Reserve(1000, 200), EDQUOT);
  EXPECT_EQ(Look().held, (Amounts{330, 110, 220, 2}));
  dead.Die();
  const Findings findings = Round();
  EXPECT_EQ(findings.reclaimed, 1u);
  EXPECT_EQ(findings.repaired, 0u);
  EXPECT_EQ(findings.leases.held, (Amounts{30, 10, 20, 1}));
  EXPECT_EQ(findings.leases.slots_taken, 1u);
  const Counts counts = pod_.adjudicator().counts();
  EXPECT_EQ(counts.reclaimed, 1u);
  EXPECT_EQ(counts.granted, 2u) << "the counts outlive the process";
  EXPECT_EQ(counts.refused, 1u);
  ExpectQuiet();
  EXPECT_EQ(living.Release(10, 20), 0);
}

// Killed while it took the slot, or gave it back.
TEST_F(AdjudicatorTest, WhatAHalfTakenSlotLeft) {
  Scribbler scribbler(pod_.path());
  const uint32_t pid = purser_ledger_slot_word(3, PURSER_LEDGER_PID);
  scribbler.Write(pid, purser_ledger_encode(pid, 1234));
  const Findings findings = Round();
  EXPECT_EQ(findings.repaired, 0u);
  EXPECT_EQ(findings.reclaimed, 0u);
  EXPECT_EQ(scribbler.Read(pid), purser_ledger_encode(pid, 0));
  ExpectQuiet();
  // Its counts alone.
  const uint32_t granted = purser_ledger_slot_word(3, PURSER_LEDGER_GRANTED);
  scribbler.Write(granted, purser_ledger_encode(granted, 5));
  Round();
  ExpectQuiet();
  EXPECT_EQ(pod_.adjudicator().counts().granted, 5u);
}

TEST_F(AdjudicatorTest, DamageToALivingSlotIsUndone) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  ExpectQuiet();
  Scribbler scribbler(pod_.path());
  uint64_t damaged = 1;
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOT_USED_WORDS; ++i)
    if (i != PURSER_LEDGER_BEGUN && i != PURSER_LEDGER_STATE_COPY) {
      scribbler.Write(client.Word(i), 0xdead);
      ++damaged;
    }
  scribbler.Write(client.State(), 0);
  EXPECT_EQ(Look().held, (Amounts{30, 10, 20, 1})) << "as last seen";
  const Findings findings = Round();
  EXPECT_EQ(findings.repaired, damaged);
  EXPECT_EQ(findings.leases.held, (Amounts{30, 10, 20, 1}));
  EXPECT_EQ(findings.leases.slots_unknown, 0u);
  EXPECT_EQ(pod_.adjudicator().counts().repaired, findings.repaired);
  EXPECT_EQ(client.Release(10, 20), 0) << "the client did not notice";
  ExpectQuiet();
  EXPECT_EQ(pod_.adjudicator().counts().granted, 1u);
}

// What was claimed after the last look is not lost: it is not known how much.
TEST_F(AdjudicatorTest, DamageAfterAClaimThatWasNotSeenIsUnknown) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  ExpectQuiet();
  ASSERT_EQ(client.Reserve(100, 0), 0);
  Scribbler(pod_.path()).Write(client.Word(0), 0xdead);
  EXPECT_EQ(Look().held, (Amounts{kMax, 110, 20, 2}));
  const Findings findings = Round();
  EXPECT_EQ(findings.repaired, 1u);
  EXPECT_EQ(findings.leases.held, (Amounts{kMax, 110, 20, 2}));
  EXPECT_EQ(findings.leases.slots_unknown, 1u);
  EXPECT_EQ(client.Release(10, 20), 0);
  EXPECT_EQ(client.Release(100, 0), 0);
  EXPECT_EQ(Round().leases.held, (Amounts{kMax, 0, 0, 0})) << "and stays so";
  EXPECT_EQ(client.Reserve(1, 0), EDQUOT);
  client.Die();
  EXPECT_EQ(Round().leases.held, Amounts{});
}

// What was released since was no more than what was seen.
TEST_F(AdjudicatorTest, DamageAfterAReleaseThatWasNotSeen) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  ExpectQuiet();
  ASSERT_EQ(client.Release(10, 20), 0);
  Scribbler(pod_.path()).Write(client.Word(1), 0xdead);
  EXPECT_EQ(Round().leases.held, (Amounts{0, 10, 0, 0}));
}

// A look while a claim was under way says nothing about what it claims.
TEST_F(AdjudicatorTest, DamageAfterALookDuringAClaim) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  const uint32_t begun = client.Word(PURSER_LEDGER_BEGUN);
  Scribbler scribbler(pod_.path());
  scribbler.Write(begun, purser_ledger_encode(begun, 2));
  ExpectQuiet();
  scribbler.Write(client.Word(1), 0xdead);
  EXPECT_EQ(Round().leases.held, (Amounts{30, kMax, 20, 1}));
}

TEST_F(AdjudicatorTest, CountsOfClaimsThatAreDamagedVouchForNothing) {
  for (const uint32_t word :
       {PURSER_LEDGER_BEGUN, PURSER_LEDGER_GRANTED, PURSER_LEDGER_REFUSED}) {
    SCOPED_TRACE(word);
    Client client(pod_.path());
    ASSERT_EQ(client.Reserve(10, 20), 0);
    ExpectQuiet();
    ASSERT_EQ(client.Reserve(100, 0), 0);
    Scribbler scribbler(pod_.path());
    scribbler.Write(client.Word(word), 0xdead);
    EXPECT_EQ(Round().repaired, 1u);
    ASSERT_EQ(client.Release(100, 0), 0);
    ExpectQuiet();
    scribbler.Write(client.Word(1), 0xdead);
    EXPECT_EQ(Round().leases.held, (Amounts{30, kMax, 20, 1}));
    client.Detach();
  }
}

TEST_F(AdjudicatorTest, DamageToASlotOfTheDead) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  Scribbler(pod_.path()).Write(client.Word(0), 1);
  client.Die();
  const Findings findings = Round();
  EXPECT_EQ(findings.reclaimed, 1u);
  EXPECT_EQ(findings.repaired, 1u);
  EXPECT_EQ(findings.leases.held, Amounts{});
  ExpectQuiet();
}

TEST_F(AdjudicatorTest, DamageToAFreeSlot) {
  Scribbler scribbler(pod_.path());
  scribbler.Write(purser_ledger_slot_word(9, 2), 0);
  scribbler.Write(PURSER_LEDGER_STATES + 10, 77);
  EXPECT_EQ(Look().slots_unknown, 0u) << "its copy says that it is free";
  scribbler.Write(PURSER_LEDGER_STATES + 11, 77);
  scribbler.Write(purser_ledger_slot_word(11, PURSER_LEDGER_STATE_COPY), 77);
  EXPECT_EQ(Look().slots_unknown, 1u) << "it may be taken";
  EXPECT_EQ(Look().slots_taken, 0u);
  const Findings findings = Round();
  EXPECT_EQ(findings.repaired, 4u);
  EXPECT_EQ(findings.reclaimed, 0u);
  EXPECT_EQ(findings.leases.held, Amounts{});
  ExpectQuiet();
}

// Nobody knows what the living slot held, so nothing is granted till it ends.
TEST_F(AdjudicatorTest, WhatWasNeverSeenIsUnknown) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  Scribbler(pod_.path()).Write(client.Word(0), 0);
  pod_.Restart();
  pod_.SetBudget({1000, 1000, 1000, 100});
  const Findings findings = Round();
  EXPECT_EQ(findings.repaired, 1u);
  EXPECT_EQ(findings.leases.slots_unknown, 1u);
  EXPECT_EQ(findings.leases.held, (Amounts{kMax, 10, 20, 1}));
  EXPECT_EQ(findings.leases.known, (Amounts{0, 10, 20, 1}));
  Client other(pod_.path());
  EXPECT_EQ(other.Reserve(1, 0), EDQUOT);
  ExpectQuiet();
  client.Detach();
  EXPECT_EQ(other.Reserve(1, 0), 0);
}

// It came since the last look: what it has may not be taken for what the one
// before it had.
TEST_F(AdjudicatorTest, AnotherHolderThanTheOneSeen) {
  {
    Client before(pod_.path());
    ASSERT_EQ(before.Reserve(1, 1), 0);
    Round();
    before.Detach();
  }
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(100, 200), 0);
  Scribbler(pod_.path()).Write(client.Word(1), 0);
  EXPECT_EQ(Look().held, (Amounts{300, kMax, 200, 1}));
  EXPECT_EQ(Round().leases.held, (Amounts{300, kMax, 200, 1}));
}

// Damaged while no sidecar ran: the copy has it.
TEST_F(AdjudicatorTest, TheStateOfAHolderThatWasNotSeen) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(100, 200), 0);
  ASSERT_EQ(client.Release(0, 0, 0), 0);
  Scribbler(pod_.path()).Write(client.State(), 0);
  pod_.Restart();
  pod_.SetBudget({1000, 1000, 1000, 100});
  EXPECT_EQ(Look().held, (Amounts{300, 100, 200, 1}));
  const Findings findings = Round();
  EXPECT_EQ(findings.leases.held, (Amounts{300, 100, 200, 1}));
  EXPECT_EQ(findings.repaired, 1u);
  EXPECT_EQ(client.Release(100, 200), 0);
  ExpectQuiet();
}

// Which of all states is the right one only its holder knows, who writes it
// again; until then there may be anything.
TEST_F(AdjudicatorTest, AStateThatIsDamagedTwice) {
  Client client(pod_.path()), other(pod_.path());
  ASSERT_EQ(client.Reserve(100, 200), 0);
  ExpectQuiet();
  Scribbler scribbler(pod_.path());
  scribbler.Write(client.State(), 0);
  scribbler.Write(client.Word(PURSER_LEDGER_STATE_COPY), 0);
  EXPECT_EQ(Round().leases.slots_unknown, 1u);
  EXPECT_EQ(other.Reserve(1, 1), EUCLEAN);
  EXPECT_EQ(client.Release(50, 50, 0), 0);
  EXPECT_EQ(Round().leases.held, (Amounts{200, 50, 150, 1}));
  EXPECT_EQ(other.Reserve(1, 1), 0);
  ExpectQuiet();
}

// What lay behind the cut is unknown, and so denies, until its holder ends.
TEST_F(AdjudicatorTest, ATruncatedFileIsMadeWhole) {
  ASSERT_EQ(pod_.adjudicator().Publish({5, 5, 0, 1}), 0);
  for (const off_t size : {off_t{0}, off_t{70}, off_t{4100}}) {
    SCOPED_TRACE(size);
    Client client(pod_.path());
    ASSERT_EQ(client.Reserve(10, 20), 0);
    ExpectQuiet();
    Scribbler(pod_.path()).Truncate(size);
    EXPECT_GE(Look().held[0], kMax);
    const Findings findings = Round();
    EXPECT_TRUE(findings.truncated);
    EXPECT_GT(findings.repaired, 0u);
    EXPECT_EQ(findings.error, 0);
    EXPECT_EQ(findings.leases.slots_unknown, 1u);
    EXPECT_FALSE(Round().truncated);
    EXPECT_EQ(client.Reserve(1, 1), EDQUOT);
    EXPECT_EQ(client.Release(10, 20), 0);
    EXPECT_EQ(Round().leases.slots_taken, 1u);
    client.Detach();
    Round();
    ExpectQuiet();
    EXPECT_EQ(Look().held, Amounts{});
  }
}

TEST_F(AdjudicatorTest, TheSidecarsOwnWordsAreWrittenAgain) {
  ASSERT_EQ(pod_.adjudicator().Publish({5, 3, 2, 1}), 0);
  Client dead(pod_.path());
  dead.Die();
  EXPECT_EQ(Round().reclaimed, 1u);
  Scribbler scribbler(pod_.path());
  const auto valid = [](uint32_t index, uint64_t value) {
    return purser_ledger_encode(index, value);
  };
  // Also what looks sound: nobody else may raise the budget.
  scribbler.Write(PURSER_LEDGER_BUDGET, valid(PURSER_LEDGER_BUDGET, 1 << 30));
  scribbler.Write(PURSER_LEDGER_BROKERED + 1,
                  valid(PURSER_LEDGER_BROKERED + 1, 0));
  scribbler.Write(PURSER_LEDGER_SIDECAR + 2, 0);
  scribbler.Write(PURSER_LEDGER_LEFT, 0);
  scribbler.Write(0, 0);
  scribbler.Write(1, 2);
  scribbler.Write(4, 0);
  scribbler.Write(PURSER_LEDGER_CHECKED_VERSION, 0);
  EXPECT_EQ(Round().repaired, 8u);
  ExpectQuiet();
  EXPECT_EQ(scribbler.Read(PURSER_LEDGER_BUDGET),
            valid(PURSER_LEDGER_BUDGET, 1000));
  EXPECT_EQ(scribbler.Read(PURSER_LEDGER_BROKERED + 1),
            valid(PURSER_LEDGER_BROKERED + 1, 3));
  EXPECT_EQ(scribbler.Read(PURSER_LEDGER_SIDECAR + 2),
            valid(PURSER_LEDGER_SIDECAR + 2, 1));
  EXPECT_EQ(scribbler.Read(0), PURSER_LEDGER_MAGIC);
}

TEST_F(AdjudicatorTest, CountsOutliveTheSidecar) {
  Client dead(pod_.path()), left(pod_.path()), living(pod_.path());
  ASSERT_EQ(dead.Reserve(1, 1), 0);
  ASSERT_EQ(left.Reserve(1, 1), 0);
  ASSERT_EQ(living.Reserve(1, 1), 0);
  dead.Die();
  left.Detach();
  EXPECT_EQ(Round().reclaimed, 1u);
  pod_.Restart();
  Look();
  const Counts counts = pod_.adjudicator().counts();
  EXPECT_EQ(counts.granted, 3u);
  EXPECT_EQ(counts.reclaimed, 1u);
}

// Who leaves clears its counts before it adds them to those who left.
TEST_F(AdjudicatorTest, CountsNeverFall) {
  Client client(pod_.path());
  ASSERT_EQ(client.Reserve(1, 1), 0);
  EXPECT_EQ(client.Reserve(5000, 1), EDQUOT);
  Look();
  EXPECT_EQ(pod_.adjudicator().counts().granted, 1u);
  Scribbler scribbler(pod_.path());
  for (const uint32_t word : {PURSER_LEDGER_GRANTED, PURSER_LEDGER_REFUSED})
    scribbler.Write(client.Word(word),
                    purser_ledger_encode(client.Word(word), 0));
  Look();
  EXPECT_EQ(pod_.adjudicator().counts().granted, 1u);
  EXPECT_EQ(pod_.adjudicator().counts().refused, 1u);
}

// Who holds a slot's lock without the slot is left alone.
TEST_F(AdjudicatorTest, ALockedFreeSlotIsLeftAlone) {
  Client client(pod_.path());
  Scribbler(pod_.path())
      .Write(client.State(), purser_ledger_encode(client.State(), 2));
  ExpectQuiet();
  EXPECT_EQ(Round().leases.slots_taken, 0u);
}

TEST_F(AdjudicatorTest, TellsThatTheNameIsAnothers) {
  std::filesystem::remove(pod_.path());
  EXPECT_TRUE(Round().displaced);
}

TEST_F(AdjudicatorTest, AFileThatCannotBeWrittenIsToldAndTriedAgain) {
  Client dead(pod_.path());
  ASSERT_EQ(dead.Reserve(10, 10), 0);
  Client living(pod_.path());
  ASSERT_EQ(living.Reserve(5, 5), 0);
  Round();
  dead.Die();
  Scribbler scribbler(pod_.path());
  scribbler.Write(living.Word(0), 0);
  scribbler.Write(living.State(), 0);
  scribbler.Write(0, 0);
  scribbler.Write(PURSER_LEDGER_BUDGET, 0);
  {
    const NothingCanBeWritten full;
    EXPECT_EQ(Round().error, EFBIG);
    EXPECT_EQ(pod_.adjudicator().Publish({1, 1, 0, 1}), EFBIG);
    EXPECT_EQ(pod_.adjudicator().SetBudget({1, 1, 1, 1}), EFBIG);
    EXPECT_GE(Look().held[0], 10u) << "the living one's is still known";
  }
  EXPECT_EQ(Round().leases.held, (Amounts{10, 5, 5, 1}));
  ExpectQuiet();
  scribbler.Truncate(100);
  {
    const NothingCanBeWritten full;
    EXPECT_EQ(Round().error, EFBIG);
  }
  EXPECT_EQ(Round().leases.slots_unknown, 1u);
  EXPECT_EQ(scribbler.Read(PURSER_LEDGER_BUDGET),
            purser_ledger_encode(PURSER_LEDGER_BUDGET, 1));
}

TEST(AdjudicatorOfNoFile, GrantsNothing) {
  const LedgerFile closed;
  Adjudicator adjudicator(closed);
  EXPECT_EQ(adjudicator.Look().held[0], 256 * kMax);
  const Findings findings = adjudicator.Adjudicate();
  EXPECT_EQ(findings.error, EBADF);
  EXPECT_EQ(findings.leases.slots_unknown, 256u);
}

}  // namespace
}  // namespace purser::ledger
