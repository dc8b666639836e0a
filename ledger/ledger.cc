// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger.h"

#include <cstddef>

namespace purser::ledger {
namespace {

static_assert(offsetof(LedgerState, magic) == 0);
static_assert(offsetof(LedgerState, version) == 4);
static_assert(offsetof(LedgerState, size_bytes) == 8);
static_assert(offsetof(LedgerState, total_bound) == 64);
static_assert(offsetof(LedgerState, container_bound) == 72);
static_assert(offsetof(LedgerState, lease_bound) == 80);
static_assert(offsetof(LedgerState, total_held) == 128);
static_assert(offsetof(LedgerState, container_held) == 136);
static_assert(offsetof(LedgerState, leases) == 192);
static_assert(offsetof(LedgerState, reserves_granted) == 200);
static_assert(offsetof(LedgerState, reserves_refused) == 208);
static_assert(offsetof(LedgerState, peak_total_held) == 216);
static_assert(sizeof(LedgerState) == 256);

using Counter = std::atomic<uint64_t>;

constexpr uint64_t Excess(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

constexpr bool Wraps(Charge charge) {
  return charge.container > UINT64_MAX - charge.node;
}

void Subtract(Counter& held, uint64_t bytes) {
  uint64_t before = held.load();
  while (!held.compare_exchange_weak(before, Excess(before, bytes))) continue;
}

// Adds `bytes` to `held` if the sum stays within `bound`. The bound is read
// again afterwards: one that was lowered in between counts as lowered before,
// so that nothing is granted after SetBounds() has returned.
ReserveResult Add(Counter& held, const Counter& bound, uint64_t bytes,
                  Bound which) {
  uint64_t before = held.load();
  uint64_t limit = 0;
  do {
    limit = bound.load();
    if (before > limit || bytes > limit - before)
      return {which, bytes, before, limit};
  } while (!held.compare_exchange_weak(before, before + bytes));
  limit = bound.load();
  if (before <= limit && bytes <= limit - before) return {};
  Subtract(held, bytes);
  return {which, bytes, before, limit};
}

// Both counters or none. The total goes first here and last in Subtract(), so
// that it never falls below the container's part.
ReserveResult Add(LedgerState& state, uint64_t total, uint64_t container) {
  if (total != 0) {
    const ReserveResult result =
        Add(state.total_held, state.total_bound, total, Bound::kTotal);
    if (!result.ok()) return result;
  }
  if (container != 0) {
    const ReserveResult result =
        Add(state.container_held, state.container_bound, container,
            Bound::kContainer);
    if (!result.ok()) {
      Subtract(state.total_held, total);
      return result;
    }
  }
  const uint64_t held = state.total_held.load();
  uint64_t peak = state.peak_total_held.load();
  while (peak < held &&
         !state.peak_total_held.compare_exchange_weak(peak, held))
    continue;
  return {};
}

void Subtract(LedgerState& state, uint64_t total, uint64_t container) {
  Subtract(state.container_held, container);
  Subtract(state.total_held, total);
}

ReserveResult RefuseUnrepresentable(const LedgerState& state) {
  return {Bound::kTotal, UINT64_MAX, state.total_held.load(),
          state.total_bound.load()};
}

}  // namespace

void Ledger::Format(LedgerState& state) {
  state.version = kVersion;
  state.size_bytes = sizeof(LedgerState);
  state.total_bound = kUnlimited;
  state.container_bound = kUnlimited;
  state.lease_bound = kUnlimited;
  state.total_held = 0;
  state.container_held = 0;
  state.leases = 0;
  state.reserves_granted = 0;
  state.reserves_refused = 0;
  state.peak_total_held = 0;
  state.magic = kMagic;
}

void Ledger::SetBounds(uint64_t total_bound, uint64_t container_bound,
                       uint64_t lease_bound) {
  if (gate_ != nullptr)
    return gate_->SetBounds(total_bound, container_bound, lease_bound);
  state_->total_bound = total_bound;
  state_->container_bound = container_bound;
  state_->lease_bound = lease_bound;
}

ReserveResult Ledger::Reserve(Charge charge) {
  if (gate_ != nullptr) return gate_->Reserve(charge);
  ReserveResult result =
      Wraps(charge)
          ? RefuseUnrepresentable(*state_)
          : Add(state_->leases, state_->lease_bound, 1, Bound::kLeases);
  if (result.ok()) {
    result = Add(*state_, charge.total(), charge.container);
    if (!result.ok()) Subtract(state_->leases, 1);
  }
  ++(result.ok() ? state_->reserves_granted : state_->reserves_refused);
  return result;
}

ReserveResult Ledger::Commit(Charge reserved, Charge actual) {
  if (gate_ != nullptr) return gate_->Commit(reserved, actual);
  if (Wraps(actual)) return RefuseUnrepresentable(*state_);
  const ReserveResult result =
      Add(*state_, Excess(actual.total(), reserved.total()),
          Excess(actual.container, reserved.container));
  if (result.ok())
    Subtract(*state_, Excess(reserved.total(), actual.total()),
             Excess(reserved.container, actual.container));
  return result;
}

void Ledger::Release(Charge charge) {
  if (gate_ != nullptr) return gate_->Release(charge);
  Subtract(*state_, charge.total(), charge.container);
  Subtract(state_->leases, 1);
}

Balance Ledger::balance() const {
  const uint64_t container = state_->container_held;
  const uint64_t total = state_->total_held;
  const Charge leased = gate_ != nullptr ? gate_->Leased() : Charge{};
  return {.held = {.container = container + leased.container,
                   .node = Excess(total, container) + leased.node},
          .total_bound = state_->total_bound,
          .container_bound = state_->container_bound,
          .lease_bound = state_->lease_bound,
          .leases = state_->leases,
          .reserves_granted = state_->reserves_granted,
          .reserves_refused = state_->reserves_refused,
          .peak_total_held = state_->peak_total_held};
}

}  // namespace purser::ledger
