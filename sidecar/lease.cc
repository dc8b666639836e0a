// SPDX-License-Identifier: Apache-2.0
#include "sidecar/lease.h"

#include <algorithm>
#include <utility>

namespace purser::sidecar {

Lease::Lease(std::shared_ptr<Accounts> accounts, Owner owner,
             ledger::Charge charge, Held held)
    : accounts_(std::move(accounts)),
      owner_(std::move(owner)),
      charge_(charge),
      held_(held) {}

Lease::Lease(Lease&& other) noexcept
    : accounts_(std::exchange(other.accounts_, nullptr)),
      owner_(std::move(other.owner_)),
      charge_(std::exchange(other.charge_, {})),
      held_(other.held_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  Lease incoming(std::move(other));
  std::swap(accounts_, incoming.accounts_);
  std::swap(owner_, incoming.owner_);
  std::swap(charge_, incoming.charge_);
  std::swap(held_, incoming.held_);
  return *this;
}

Lease::~Lease() {
  if (accounts_ != nullptr) accounts_->Release(owner_, charge_, held_);
}

bool Lease::Commit(ledger::Charge actual) {
  if (accounts_ == nullptr || !accounts_->Commit(owner_, charge_, actual))
    return false;
  charge_ = actual;
  return true;
}

Lease Lease::Split(ledger::Charge part) {
  if (accounts_ == nullptr) return {};
  part.container = std::min(part.container, charge_.container);
  part.node = std::min(part.node, charge_.node);
  charge_.container -= part.container;
  charge_.node -= part.node;
  return Lease(accounts_, owner_, part, Held::kQueue);
}

void Lease::Absorb(Lease other) {
  if (other.accounts_ == nullptr) return;
  if (accounts_ == nullptr) {
    *this = std::move(other);
    return;
  }
  other.accounts_ = nullptr;
  charge_.container += other.charge_.container;
  charge_.node += other.charge_.node;
}

}  // namespace purser::sidecar
