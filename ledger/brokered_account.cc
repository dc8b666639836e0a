// SPDX-License-Identifier: Apache-2.0
#include "ledger/brokered_account.h"

namespace purser::ledger {
namespace {

uint64_t Sum(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t Excess(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

bool Wraps(Charge charge) {
  return charge.container > UINT64_MAX - charge.node;
}

}  // namespace

BrokeredAccount::BrokeredAccount(LedgerState& state, Adjudicator& adjudicator)
    : own_(&state), adjudicator_(adjudicator) {}

int BrokeredAccount::SetBounds(uint64_t total_bound, uint64_t container_bound,
                               uint64_t lease_bound) {
  own_.SetBounds(total_bound, container_bound, lease_bound);
  return adjudicator_.SetBudget(
      {total_bound, container_bound, kUnlimited, lease_bound});
}

int BrokeredAccount::Publish(const Amounts& claim) {
  const Balance own = own_.balance();
  return adjudicator_.Publish(
      {Sum(own.held.total(), claim[0]), Sum(own.held.container, claim[1]),
       Sum(own.held.node, claim[2]), Sum(own.leases, claim[3])});
}

ReserveResult BrokeredAccount::Exceeds(const Leases& leases,
                                       const Amounts& claim) const {
  const Balance own = own_.balance();
  const auto exceeds = [&](Bound which, uint64_t held, uint64_t bound,
                           uint32_t amount) {
    const uint64_t needed = claim[amount];
    const uint64_t all = Sum(held, leases.held[amount]);
    const bool fits = needed == 0 || bound >= PURSER_LEDGER_MAX ||
                      (all <= bound && needed <= bound - all);
    return fits ? ReserveResult{} : ReserveResult{which, needed, all, bound};
  };
  const ReserveResult count = exceeds(
      Bound::kLeases, own.leases, own.lease_bound, PURSER_LEDGER_QUEUE_PAIRS);
  if (!count.ok()) return count;
  const ReserveResult total = exceeds(Bound::kTotal, own.held.total(),
                                      own.total_bound, PURSER_LEDGER_ALL_BYTES);
  if (!total.ok()) return total;
  return exceeds(Bound::kContainer, own.held.container, own.container_bound,
                 PURSER_LEDGER_CONTAINER_BYTES);
}

ReserveResult BrokeredAccount::Claim(const Amounts& claim) {
  ReserveResult result;
  if (Publish(claim) == 0) {
    result = Exceeds(adjudicator_.Look(), claim);
    // Perhaps for the sake of a dead process, or of damage.
    if (!result.ok()) result = Exceeds(adjudicator_.Adjudicate().leases, claim);
  } else {
    // Nobody sees the claim, so nobody leaves room for it.
    Leases unknown;
    unknown.held.fill(PURSER_LEDGER_MAX);
    result = Exceeds(unknown, claim);
  }
  if (!result.ok()) Publish({});
  return result;
}

ReserveResult BrokeredAccount::Reserve(Charge charge) {
  if (!Wraps(charge)) {
    const ReserveResult result =
        Claim({charge.total(), charge.container, charge.node, 1});
    if (!result.ok()) return result;
  }
  const ReserveResult result = own_.Reserve(charge);
  Publish({});
  return result;
}

ReserveResult BrokeredAccount::Commit(Charge reserved, Charge actual) {
  if (!Wraps(actual)) {
    const ReserveResult result =
        Claim({Excess(actual.total(), reserved.total()),
               Excess(actual.container, reserved.container),
               Excess(actual.node, reserved.node), 0});
    if (!result.ok()) return result;
  }
  const ReserveResult result = own_.Commit(reserved, actual);
  Publish({});
  return result;
}

void BrokeredAccount::Release(Charge charge) {
  own_.Release(charge);
  Publish({});
}

Findings BrokeredAccount::Adjudicate() { return adjudicator_.Adjudicate(); }

}  // namespace purser::ledger
