// SPDX-License-Identifier: Apache-2.0
#include "ledger/adjudicator.h"

#include <errno.h>

#include <atomic>

namespace purser::ledger {
namespace {

uint32_t StateIndex(uint32_t slot) { return PURSER_LEDGER_STATES + slot; }

uint64_t Limited(uint64_t value) {
  return value < PURSER_LEDGER_MAX ? value : PURSER_LEDGER_MAX;
}

bool Decode(const Image& image, uint32_t index, uint64_t& value) {
  return purser_ledger_decode(index, image[index], &value);
}

void Count(uint64_t& counter, uint64_t more) {
  counter = (counter + more) & PURSER_LEDGER_MAX;
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

// Nobody's, and nothing in it.
bool Adjudicator::Free(uint32_t slot) const {
  uint64_t state, value;
  if (!Decode(image_, StateIndex(slot), state) || purser_ledger_taken(state))
    return false;
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOT_USED_WORDS; ++i)
    if (!Decode(image_, purser_ledger_slot_word(slot, i), value) || value != 0)
      return false;
  return true;
}

uint64_t Adjudicator::DamagedWords(uint32_t slot) const {
  uint64_t damaged = 0, value;
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOT_USED_WORDS; ++i)
    if (!Decode(image_, purser_ledger_slot_word(slot, i), value)) ++damaged;
  return damaged + (Decode(image_, StateIndex(slot), value) ? 0 : 1);
}

void Adjudicator::Remember(uint32_t slot) {
  uint64_t state, value;
  if (!Decode(image_, StateIndex(slot), state)) return;
  Seen& seen = seen_[slot];
  const bool same = seen.state == state;
  seen.state = state;
  for (uint32_t i = 0; i < seen.words.size(); ++i) {
    if (Decode(image_, purser_ledger_slot_word(slot, i), value))
      seen.words[i] = value;
    else if (!same)  // another holder's, of whom nothing was seen
      seen.words[i] = i < PURSER_LEDGER_AMOUNTS ? PURSER_LEDGER_MAX : 0;
  }
}

// After Remember(): a state that is damaged counts as the one last seen, and
// where that was free, as taken by somebody of whom nothing is known.
void Adjudicator::AddLeases(uint32_t slot, Leases& leases) {
  const Seen& seen = seen_[slot];
  uint64_t state, value;
  const bool damaged = !Decode(image_, StateIndex(slot), state);
  if (!purser_ledger_taken(damaged ? seen.state | 1 : state)) return;
  const bool known = !damaged || purser_ledger_taken(seen.state);
  ++leases.slots_taken;
  bool unknown = false;
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS; ++i) {
    if (!Decode(image_, purser_ledger_slot_word(slot, i), value))
      value = known ? seen.words[i] : PURSER_LEDGER_MAX;
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
  if (const int error = file_.MakeWhole(); error > 0) findings.error = error;
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
    if (!Free(slot)) Judge(slot, findings);
    Remember(slot);
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
    if (!Free(slot)) Bury(slot, findings);
    file_.UnlockSlot(slot);
    return;
  }
  // Somebody lives there. What he was writing just now may have been read half.
  if (DamagedWords(slot) == 0) return;
  ReadAgain(slot, findings);
  Heal(slot, findings);
}

// Under the slot's lock: its holder is gone.
void Adjudicator::Bury(uint32_t slot, Findings& findings) {
  uint64_t state, count;
  const uint64_t damaged = DamagedWords(slot);
  if (!Decode(image_, StateIndex(slot), state)) state = seen_[slot].state;
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

// The holder lives, and leaves damaged words alone.
void Adjudicator::Heal(uint32_t slot, Findings& findings) {
  uint64_t state, value;
  const uint32_t state_index = StateIndex(slot);
  if (!Decode(image_, state_index, state)) {
    // One that came since the last look has the state after the free one.
    const uint64_t before = seen_[slot].state;
    state = purser_ledger_taken(before) ? before
                                        : purser_ledger_state_taken(before);
    findings.Note(Write(state_index, &state, 1), 1);
    image_[state_index] = purser_ledger_encode(state_index, state);
  }
  Remember(slot);
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOT_USED_WORDS; ++i) {
    const uint32_t index = purser_ledger_slot_word(slot, i);
    if (Decode(image_, index, value)) continue;
    findings.Note(Write(index, &seen_[slot].words[i], 1), 1);
    image_[index] = purser_ledger_encode(index, seen_[slot].words[i]);
  }
}

// From the last look on.
Counts Adjudicator::counts() const {
  Counts counts = {.granted = left_[0] + own_[0],
                   .refused = left_[1] + own_[1],
                   .reclaimed = own_[2],
                   .repaired = own_[3]};
  for (const Seen& seen : seen_) {
    if (!purser_ledger_taken(seen.state)) continue;
    counts.granted += seen.words[PURSER_LEDGER_GRANTED];
    counts.refused += seen.words[PURSER_LEDGER_REFUSED];
  }
  return counts;
}

}  // namespace purser::ledger
