// SPDX-License-Identifier: Apache-2.0
//
// The sidecar's own objects beside the leases in the file: what it holds is
// counted in a private Ledger, published in the file before the others' leases
// are looked at (as every process does with its claim), and granted only while
// both together stay within the budget. One thread at a time. A file that
// cannot be written or read denies; it never grants.
#pragma once

#include <cstdint>

#include "ledger/adjudicator.h"
#include "ledger/ledger.h"

namespace purser::ledger {

class BrokeredAccount {
 public:
  // `state` is formatted and, as `adjudicator`, outlives this.
  BrokeredAccount(LedgerState& state, Adjudicator& adjudicator);

  int SetBounds(uint64_t total_bound, uint64_t container_bound,
                uint64_t lease_bound = kUnlimited);

  // As Ledger's; `held` in a refusal includes the leases in the file.
  ReserveResult Reserve(Charge charge);
  ReserveResult Commit(Charge reserved, Charge actual);
  void Release(Charge charge);

  // The dead and the damage, at each round.
  Findings Adjudicate();

  Balance balance() const { return own_.balance(); }

 private:
  int Publish(const Amounts& claim);
  ReserveResult Exceeds(const Leases& leases, const Amounts& claim) const;
  // Publishes the claim and looks whether all together fit; if not, takes it
  // back.
  ReserveResult Claim(const Amounts& claim);

  Ledger own_;
  Adjudicator& adjudicator_;
};

}  // namespace purser::ledger
