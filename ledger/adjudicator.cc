// SPDX-License-Identifier: Apache-2.0
#include "ledger/adjudicator.h"

#include <errno.h>

#include <atomic>
#include <optional>

#include "ledger/image.h"

namespace purser::ledger {
namespace {

uint64_t Limited(uint64_t value) {
  return value < PURSER_LEDGER_MAX ? value : PURSER_LEDGER_MAX;
}

void Count(uint64_t& counter, uint64_t more) {
  counter = (counter + more) & PURSER_LEDGER_MAX;
}

void Raise(uint64_t& most, uint64_t value) {
  if (value > most) most = value;
}

}  // namespace

Adjudicator::Adjudicator(const LedgerFile& file) : file_(file) {
  file_.Read(image_);
  uint64_t value;
  for (uint32_t i = 0; i < own_.size(); ++i)
    if (Decode(image_, PURSER_LEDGER_SIDECAR + i, value)) own_[i] = value;
  for (uint32_t i = 0; i < left_.size(); ++i)
    if (Decode(image_, PURSER_LEDGER_LEFT + i, value)) left_[i] = value;
}

// ---- What the sidecar writes ----

int Adjudicator::Write(uint32_t first, const uint64_t* values, uint32_t count) {
  uint64_t words[PURSER_LEDGER_SLOT_WORDS];
  for (uint32_t i = 0; i < count; ++i)
    words[i] = purser_ledger_encode(first + i, Limited(values[i]));
  return file_.Write(first, words, count);
}

int Adjudicator::WriteOwn() {
  int error = Write(PURSER_LEDGER_BUDGET, budget_.data(), budget_.size());
  if (!error)
    error = Write(PURSER_LEDGER_BROKERED, brokered_.data(), brokered_.size());
  if (!error) error = Write(PURSER_LEDGER_SIDECAR, own_.data(), own_.size());
  written_ = error == 0;
  return error;
}

int Adjudicator::SetBudget(const Amounts& budget) {
  budget_ = budget;
  const int error = Write(PURSER_LEDGER_BUDGET, budget_.data(), budget_.size());
  written_ = written_ && error == 0;
  return error;
}

int Adjudicator::Publish(const Amounts& brokered) {
  brokered_ = brokered;
  const int error =
      Write(PURSER_LEDGER_BROKERED, brokered_.data(), brokered_.size());
  written_ = written_ && error == 0;
  return error;
}

void Adjudicator::Restore(uint32_t first, const uint64_t* values,
                          uint32_t count, Findings& findings) {
  uint64_t differing = 0;
  for (uint32_t i = 0; i < count; ++i)
    if (image_[first + i] !=
        purser_ledger_encode(first + i, Limited(values[i])))
      ++differing;
  if (differing == 0) return;
  findings.Note(Write(first, values, count), differing);
}

void Adjudicator::RestoreHeader(Findings& findings) {
  uint64_t words[PURSER_LEDGER_HEADER_WORDS];
  uint64_t differing = 0;
  for (uint32_t i = 0; i < PURSER_LEDGER_HEADER_WORDS; ++i) {
    words[i] = purser_ledger_header_word(i);
    if (image_[i] != words[i]) ++differing;
  }
  if (differing == 0) return;
  findings.Note(file_.Write(0, words, PURSER_LEDGER_HEADER_WORDS), differing);
}

// Processes write these counters, so only what is damaged is touched.
void Adjudicator::RestoreLeft(Findings& findings) {
  for (uint32_t i = 0; i < left_.size(); ++i) {
    uint64_t value;
    const uint32_t index = PURSER_LEDGER_LEFT + i;
    if (!Decode(image_, index, value))
      Restore(index, &left_[i], 1, findings);
    else
      left_[i] = value;
  }
}

// ---- What a slot says ----

// No claim has begun since Settle().
bool Adjudicator::Unchanged(uint32_t slot) const {
  const Seen& seen = seen_[slot];
  uint64_t begun;
  return seen.settled && StateOf(image_, slot) == seen.state &&
         Decode(image_, purser_ledger_slot_word(slot, PURSER_LEDGER_BEGUN),
                begun) &&
         begun == seen.begun;
}

uint64_t Adjudicator::Amount(uint32_t slot, uint32_t amount) const {
  uint64_t value;
  if (Decode(image_, purser_ledger_slot_word(slot, amount), value))
    return value;
  return Unchanged(slot) ? seen_[slot].amounts[amount] : PURSER_LEDGER_MAX;
}

void Adjudicator::Remember(uint32_t slot) {
  const std::optional<uint64_t> state = StateOf(image_, slot);
  if (!state) return;
  Seen& seen = seen_[slot];
  if (seen.state != *state) seen = {.state = *state};
  uint64_t value;
  const auto note = [&](uint32_t word, uint64_t& into) {
    if (Decode(image_, purser_ledger_slot_word(slot, word), value))
      into = value;
  };
  note(PURSER_LEDGER_GRANTED, seen.granted);
  note(PURSER_LEDGER_REFUSED, seen.refused);
  note(PURSER_LEDGER_PID, seen.pid);
}

// Both images say that as many claims have begun as have ended: so none was
// under way between them, and the later one's amounts are no less than what is
// held until another begins.
void Adjudicator::Settle(uint32_t slot) {
  const std::optional<Claims> before = ClaimsOf(earlier_, slot);
  const std::optional<Claims> after = ClaimsOf(image_, slot);
  if (!before || before != after || after->begun != after->ended) return;
  Amounts amounts;
  for (uint32_t i = 0; i < amounts.size(); ++i)
    if (!Decode(image_, purser_ledger_slot_word(slot, i), amounts[i])) return;
  Seen& seen = seen_[slot];
  seen.settled = true;
  seen.begun = after->begun;
  seen.amounts = amounts;
}

void Adjudicator::AddLeases(uint32_t slot, Leases& leases) {
  const std::optional<uint64_t> state = StateOf(image_, slot);
  if (state && !purser_ledger_taken(*state)) return;
  if (state) ++leases.slots_taken;
  bool unknown = false;
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS; ++i) {
    const uint64_t value = state ? Amount(slot, i) : PURSER_LEDGER_MAX;
    leases.held[i] += value;
    if (value == PURSER_LEDGER_MAX)
      unknown = true;
    else
      leases.known[i] += value;
  }
  if (unknown) ++leases.slots_unknown;
}

Leases Adjudicator::Look() {
  Leases leases;
  // What was published is seen before the others are looked at.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  file_.Read(image_);
  for (uint32_t slot = 0; slot < PURSER_LEDGER_SLOTS; ++slot) {
    Remember(slot);
    AddLeases(slot, leases);
  }
  return leases;
}

// ---- A round ----

Findings Adjudicator::Adjudicate() {
  Findings findings;
  // What could not be written when it changed is no damage.
  if (!written_) findings.error = WriteOwn();
  const int whole = file_.MakeWhole();
  if (whole > 0) findings.error = whole;
  findings.truncated = whole < 0;
  file_.Read(earlier_);
  if (const int error = file_.Read(image_)) {
    findings.error = error;
    findings.leases = Look();
    return findings;
  }
  const auto before = own_;
  RestoreHeader(findings);
  Restore(PURSER_LEDGER_BUDGET, budget_.data(), budget_.size(), findings);
  Restore(PURSER_LEDGER_BROKERED, brokered_.data(), brokered_.size(), findings);
  Restore(PURSER_LEDGER_SIDECAR, own_.data(), own_.size(), findings);
  RestoreLeft(findings);
  for (uint32_t slot = 0; slot < PURSER_LEDGER_SLOTS; ++slot) {
    if (!Free(image_, slot)) Judge(slot, findings);
    Remember(slot);
    Settle(slot);
    AddLeases(slot, findings.leases);
  }
  findings.displaced = !file_.InPlace();
  Count(own_[2], findings.reclaimed);
  Count(own_[3], findings.repaired);
  if (own_ == before) return findings;
  const int error = Write(PURSER_LEDGER_SIDECAR, own_.data(), own_.size());
  findings.Note(error, 0);
  written_ = written_ && error == 0;
  return findings;
}

void Adjudicator::ReadAgain(uint32_t slot, Findings& findings) {
  const uint32_t first = purser_ledger_slot_word(slot, 0);
  findings.Note(file_.Read(first, &image_[first], PURSER_LEDGER_SLOT_WORDS), 0);
  findings.Note(file_.Read(StateIndex(slot), &image_[StateIndex(slot)], 1), 0);
}

void Adjudicator::Judge(uint32_t slot, Findings& findings) {
  if (file_.LockSlot(slot) == 0) {
    ReadAgain(slot, findings);
    if (!Free(image_, slot)) Bury(slot, findings);
    file_.UnlockSlot(slot);
    return;
  }
  // Somebody lives there. What he was writing just now may have been read half.
  if (DamagedWords(image_, slot) == 0) return;
  ReadAgain(slot, findings);
  Heal(slot, findings);
}

// Under the slot's lock: its holder is gone.
void Adjudicator::Bury(uint32_t slot, Findings& findings) {
  uint64_t state, count;
  const uint64_t damaged = DamagedWords(image_, slot);
  state = StateOf(image_, slot).value_or(seen_[slot].state);
  const uint64_t zeros[PURSER_LEDGER_SLOT_USED_WORDS] = {};
  const uint64_t free = purser_ledger_state_free(state);
  int error = Write(purser_ledger_slot_word(slot, 0), zeros,
                    PURSER_LEDGER_SLOT_USED_WORDS);
  if (!error) error = Write(StateIndex(slot), &free, 1);
  findings.Note(error, damaged);
  if (!error) {
    if (purser_ledger_taken(state)) ++findings.reclaimed;
    for (uint32_t i = 0; i < 2; ++i)
      if (Decode(image_,
                 purser_ledger_slot_word(slot, PURSER_LEDGER_GRANTED + i),
                 count))
        Count(own_[i], count);
  }
  ReadAgain(slot, findings);
}

// The holder lives, and leaves damaged words alone, but for its state, which
// it alone knows when the copy is damaged as well.
void Adjudicator::Heal(uint32_t slot, Findings& findings) {
  const std::optional<uint64_t> state = StateOf(image_, slot);
  if (state && purser_ledger_taken(*state)) {
    HealWord(StateIndex(slot), *state, findings);
    HealWord(purser_ledger_slot_word(slot, PURSER_LEDGER_STATE_COPY), *state,
             findings);
  }
  Remember(slot);
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS; ++i)
    HealWord(purser_ledger_slot_word(slot, i), Amount(slot, i), findings);
  HealClaims(slot, findings);
  HealWord(purser_ledger_slot_word(slot, PURSER_LEDGER_PID), seen_[slot].pid,
           findings);
}

// Counts that may lack a claim must not look settled.
void Adjudicator::HealClaims(uint32_t slot, Findings& findings) {
  uint64_t value;
  const uint32_t granted = purser_ledger_slot_word(slot, PURSER_LEDGER_GRANTED);
  const uint32_t refused = purser_ledger_slot_word(slot, PURSER_LEDGER_REFUSED);
  const uint32_t begun = purser_ledger_slot_word(slot, PURSER_LEDGER_BEGUN);
  const bool sound =
      Decode(image_, granted, value) && Decode(image_, refused, value);
  if (!sound && !Unchanged(slot) && Decode(image_, begun, value))
    findings.Note(Write(begun, &PURSER_LEDGER_MAX, 1), 0);
  HealWord(begun, PURSER_LEDGER_MAX, findings);
  HealWord(granted, seen_[slot].granted, findings);
  HealWord(refused, seen_[slot].refused, findings);
}

// Where it is damaged.
void Adjudicator::HealWord(uint32_t index, uint64_t value, Findings& findings) {
  uint64_t there;
  if (Decode(image_, index, there)) return;
  findings.Note(Write(index, &value, 1), 1);
  image_[index] = purser_ledger_encode(index, Limited(value));
}

Counts Adjudicator::counts() {
  Counts counts = {.granted = left_[0] + own_[0],
                   .refused = left_[1] + own_[1],
                   .reclaimed = own_[2],
                   .repaired = own_[3]};
  for (const Seen& seen : seen_) {
    if (!purser_ledger_taken(seen.state)) continue;
    counts.granted += seen.granted;
    counts.refused += seen.refused;
  }
  // Who leaves takes his counts along in steps.
  Raise(counted_.granted, counts.granted);
  Raise(counted_.refused, counts.refused);
  counted_.reclaimed = counts.reclaimed;
  counted_.repaired = counts.repaired;
  return counted_;
}

}  // namespace purser::ledger
