// SPDX-License-Identifier: Apache-2.0
//
// The sidecar's judgement of the ledger file: writes the budget and what the
// sidecar itself holds, reads the leases of others as far as they can be
// validated, frees the slots of the dead and repairs damage. What it writes it
// knows by itself; nothing that the file says changes that. Owned by one
// thread at a time; needs libc alone. A failure of the file is told by errno
// and tried again at the next round.
#pragma once

#include <array>
#include <cstdint>

#include "ledger/ledger_file.h"
#include "ledger/purser_ledger_layout.h"

namespace purser::ledger {

// By enum purser_ledger_amount.
using Amounts = std::array<uint64_t, PURSER_LEDGER_AMOUNTS>;

struct Leases {
  Amounts held = {};   // sums, with PURSER_LEDGER_MAX for what is unknown
  Amounts known = {};  // without it
  uint32_t slots_taken = 0;
  uint32_t slots_unknown = 0;  // where held is unknown: nothing is left
};

struct Findings {
  Leases leases;           // after the round
  uint64_t reclaimed = 0;  // slots of the dead, in this round
  uint64_t repaired = 0;   // words, in this round
  bool truncated = false;  // the file was, and is whole again
  bool displaced = false;  // the file's name is another's now, or nobody's
  int error = 0;           // the last errno of the file

  // After something was written: an errno, or how many words it repaired.
  void Note(int failed, uint64_t words) {
    if (failed != 0)
      error = failed;
    else
      repaired += words;
  }
};

// Ever, over restarts of the sidecar.
struct Counts {
  uint64_t granted = 0, refused = 0;  // reserves through the file
  uint64_t reclaimed = 0, repaired = 0;
};

class Adjudicator {
 public:
  // `file` is open and outlives this. Takes the counters over from it.
  explicit Adjudicator(const LedgerFile& file);

  // Each is in the file when it returns 0. Values above PURSER_LEDGER_MAX are
  // written as that, which is no bound.
  int SetBudget(const Amounts& budget);
  int Publish(const Amounts& brokered);

  // The leases of others as they are now. A damaged word counts as what was
  // last seen there if nothing was claimed since, else as unknown.
  Leases Look();
  // The same after the dead were buried and the damage was repaired.
  Findings Adjudicate();

  // From the last look on; none ever falls.
  Counts counts();

 private:
  // What was last seen of a slot's holder.
  struct Seen {
    uint64_t state = 0;
    uint64_t granted = 0, refused = 0, pid = 0;
    // No less than what it holds as long as `begun` claims have begun, since
    // none was under way; `settled`: there was such a moment.
    bool settled = false;
    uint64_t begun = 0;
    Amounts amounts = {};
  };

  int Write(uint32_t first, const uint64_t* values, uint32_t count);
  int WriteOwn();
  void Restore(uint32_t first, const uint64_t* values, uint32_t count,
               Findings& findings);
  void RestoreHeader(Findings& findings);
  void RestoreLeft(Findings& findings);

  bool Unchanged(uint32_t slot) const;
  uint64_t Amount(uint32_t slot, uint32_t amount) const;
  void Remember(uint32_t slot);
  void Settle(uint32_t slot);
  void AddLeases(uint32_t slot, Leases& leases);
  void ReadAgain(uint32_t slot, Findings& findings);
  void Judge(uint32_t slot, Findings& findings);
  void Bury(uint32_t slot, Findings& findings);
  void Heal(uint32_t slot, Findings& findings);
  void HealClaims(uint32_t slot, Findings& findings);
  void HealWord(uint32_t index, uint64_t value, Findings& findings);

  const LedgerFile& file_;
  Image image_ = {};
  Image earlier_ = {};  // read before image_
  std::array<Seen, PURSER_LEDGER_SLOTS> seen_ = {};
  Amounts budget_ = {};
  Amounts brokered_ = {};
  bool written_ = true;  // these two and own_ are what the file was given
  std::array<uint64_t, 2> left_ = {};  // granted, refused; others write it
  // Granted and refused of the dead, reclaimed, repaired.
  std::array<uint64_t, PURSER_LEDGER_SIDECAR_WORDS> own_ = {};
  Counts counted_;
};

}  // namespace purser::ledger
