// SPDX-License-Identifier: Apache-2.0
#include "sidecar/accounts.h"

#include <algorithm>
#include <utility>

namespace purser::sidecar {
namespace {

using Kind = ShareRefusal::Kind;

uint64_t Less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// Rounded down, but for what binary fractions lose of decimal ones.
uint64_t Part(double share, uint64_t whole) {
  constexpr long double kLost = 1e-3L;
  if (share >= 1) return whole;
  return static_cast<uint64_t>(static_cast<long double>(whole) * share + kLost);
}

}  // namespace

Accounts::Accounts(ledger::Ledger ledger, ClassesConfig config)
    : ledger_(ledger), config_(std::move(config)) {
  for (const ClassConfig& of : config_.classes) by_class_[of.name] = {};
  for (const ClientGuarantee& of : config_.guarantees)
    by_client_[of.client] = {};
}

std::vector<Accounts::Basis> Accounts::bases() const {
  const ledger::Balance balance = ledger_.balance();
  std::vector<Basis> bases;
  for (const bool container : {false, true}) {
    Basis basis{
        .container = container,
        .bound = container ? balance.container_bound : balance.total_bound};
    if (basis.bound == ledger::kUnlimited) continue;
    basis.free = Less(basis.bound, basis.Count(balance.held));
    bases.push_back(basis);
  }
  return bases;
}

uint64_t Accounts::FairShare(const ClassConfig& of, const Basis& basis) const {
  double rest = 1;
  uint64_t weights = 0;
  for (const ClassConfig& each : config_.classes) {
    rest -= each.floor;
    weights += each.weight;
  }
  for (const ClientGuarantee& each : config_.guarantees) rest -= each.share;
  return Part(
      of.floor + std::max(rest, 0.0) * of.weight / static_cast<double>(weights),
      basis.bound);
}

ShareRefusal Accounts::Judge(const Owner& owner, uint64_t needed,
                             const Basis& basis) const {
  const ClassConfig& own = *config_.Find(owner.class_name);
  ShareRefusal result{.needed = needed,
                      .used = basis.Count(by_class_.at(own.name))};
  uint64_t own_guarantee = 0;
  const auto promise = [&](const std::string& whose, uint64_t unused) {
    if (unused == 0) return;
    result.promised += unused;
    result.promised_to += (result.promised_to.empty() ? "" : ", ") + whose;
  };
  for (const ClassConfig& of : config_.classes)
    if (of.name != own.name)
      promise("class " + of.name, Less(Part(of.floor, basis.bound),
                                       basis.Count(by_class_.at(of.name))));
  for (const ClientGuarantee& of : config_.guarantees) {
    const uint64_t unused = Less(Part(of.share, basis.bound),
                                 basis.Count(by_client_.at(of.client)));
    if (of.client == owner.client)
      own_guarantee = unused;
    else
      promise("client " + of.client, unused);
  }

  const uint64_t spare = Less(basis.free, result.promised);
  const uint64_t most = Less(Part(own.max_share, basis.bound), result.used);
  const uint64_t fair_share = FairShare(own, basis);
  const uint64_t fair = std::max(Less(fair_share, result.used), spare / 2);
  // A guarantee is had whatever the class holds.
  result.allowed =
      std::max(std::min({spare, most, fair}), std::min(own_guarantee, spare));
  if (needed <= result.allowed) return result;
  result.share = fair_share;
  if (needed > spare) {
    // Where even the whole would not do, the ledger says so.
    result.kind = needed > basis.free ? Kind::kNone : Kind::kPromised;
  } else if (needed > most) {
    result.kind = Kind::kMaxShare;
    result.share = Part(own.max_share, basis.bound);
  } else {
    result.kind = Kind::kFairShare;
  }
  return result;
}

ShareRefusal Accounts::JudgeAll(const Owner& owner,
                                ledger::Charge charge) const {
  ShareRefusal all;
  for (const Basis& basis : bases()) {
    ShareRefusal result = Judge(owner, basis.Count(charge), basis);
    if (result.kind != Kind::kNone) return result;
    if (result.needed > result.allowed) all = std::move(result);
  }
  return all;
}

// What is no queue pair is more or less of what the sidecar holds already.
ledger::ReserveResult Accounts::Take(ledger::Charge charge, Held held) {
  return held == Held::kQueuePair ? ledger_.Reserve(charge)
                                  : ledger_.Commit({}, charge);
}

void Accounts::GiveBack(ledger::Charge charge, Held held) {
  if (held == Held::kQueuePair)
    ledger_.Release(charge);
  else
    ledger_.Commit(charge, {});
}

Accounts::Result Accounts::Reserve(const Owner& owner, ledger::Charge charge,
                                   Held held) {
  std::lock_guard lock(mutex_);
  Result result;
  // A ledger that finds more room than was seen has returned the leases of the
  // dead: what that leaves is judged anew.
  for (int tries = 0; tries < 2; ++tries) {
    result.share = JudgeAll(owner, charge);
    if (result.share.kind != Kind::kNone) return result;
    result.ledger = Take(charge, held);
    if (!result.ledger.ok()) return result;
    if (result.share.needed <= result.share.allowed) {
      Add(owner, charge);
      return result;
    }
    GiveBack(charge, held);
  }
  result.share.kind = Kind::kPromised;
  return result;
}

bool Accounts::Commit(const Owner& owner, ledger::Charge reserved,
                      ledger::Charge actual) {
  std::lock_guard lock(mutex_);
  if (!ledger_.Commit(reserved, actual).ok()) return false;
  Subtract(owner, reserved);
  Add(owner, actual);
  return true;
}

void Accounts::Release(const Owner& owner, ledger::Charge charge, Held held) {
  std::lock_guard lock(mutex_);
  GiveBack(charge, held);
  Subtract(owner, charge);
}

void Accounts::Add(const Owner& owner, ledger::Charge charge) {
  const auto add = [&](ledger::Charge& held) {
    held.container += charge.container;
    held.node += charge.node;
  };
  add(by_class_.at(owner.class_name));
  if (const auto found = by_client_.find(owner.client);
      found != by_client_.end())
    add(found->second);
}

void Accounts::Subtract(const Owner& owner, ledger::Charge charge) {
  const auto subtract = [&](ledger::Charge& held) {
    held.container = Less(held.container, charge.container);
    held.node = Less(held.node, charge.node);
  };
  subtract(by_class_.at(owner.class_name));
  if (const auto found = by_client_.find(owner.client);
      found != by_client_.end())
    subtract(found->second);
}

std::shared_ptr<const OwnerAccount> Accounts::AccountOf(const Owner& owner) {
  std::lock_guard lock(mutex_);
  if (const auto known = owners_.find(owner); known != owners_.end())
    if (auto found = known->second.lock()) return found;
  std::erase_if(owners_,
                [](const auto& entry) { return entry.second.expired(); });
  auto made = std::make_shared<const OwnerAccount>(
      OwnerAccount{owner, shared_from_this()});
  owners_[owner] = made;
  return made;
}

queue_memory::Headroom Accounts::HeadroomOf(const Owner& owner) const {
  std::lock_guard lock(mutex_);
  queue_memory::Headroom headroom;
  for (const Basis& basis : bases())
    (basis.container ? headroom.container : headroom.total) =
        Judge(owner, 0, basis).allowed;
  return headroom;
}

std::vector<ClassUse> Accounts::Use() const {
  std::lock_guard lock(mutex_);
  Basis basis{.bound = ledger::kUnlimited};
  for (const Basis& each : bases())
    if (each.bound < basis.bound) basis = each;
  std::vector<ClassUse> uses;
  for (const ClassConfig& of : config_.classes)
    uses.push_back({.name = of.name,
                    .core = of.core,
                    .floor_bytes = Part(of.floor, basis.bound),
                    .fair_bytes = FairShare(of, basis),
                    .max_bytes = Part(of.max_share, basis.bound),
                    .used_bytes = basis.Count(by_class_.at(of.name))});
  return uses;
}

}  // namespace purser::sidecar
