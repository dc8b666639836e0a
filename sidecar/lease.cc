// SPDX-License-Identifier: Apache-2.0
#include "sidecar/lease.h"

#include <algorithm>
#include <utility>

namespace purser::sidecar {

Lease::Lease(std::shared_ptr<const OwnerAccount> account, ledger::Charge charge,
             Held held)
    : account_(std::move(account)), charge_(charge), held_(held) {}

Lease::Lease(Lease&& other) noexcept
    : account_(std::exchange(other.account_, nullptr)),
      charge_(std::exchange(other.charge_, {})),
      held_(other.held_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  Lease incoming(std::move(other));
  std::swap(account_, incoming.account_);
  std::swap(charge_, incoming.charge_);
  std::swap(held_, incoming.held_);
  return *this;
}

Lease::~Lease() {
  if (account_ != nullptr)
    account_->accounts->Release(*account_, charge_, held_);
}

bool Lease::Commit(ledger::Charge actual) {
  if (account_ == nullptr ||
      !account_->accounts->Commit(*account_, charge_, actual))
    return false;
  charge_ = actual;
  return true;
}

std::optional<Lease> Lease::Beside(ledger::Charge charge) const {
  if (account_ == nullptr ||
      !account_->accounts->Reserve(*account_, charge, Held::kQueue).ok())
    return std::nullopt;
  return Lease(account_, charge, Held::kQueue);
}

Lease Lease::Split(ledger::Charge part) {
  if (account_ == nullptr) return {};
  part.container = std::min(part.container, charge_.container);
  part.node = std::min(part.node, charge_.node);
  charge_.container -= part.container;
  charge_.node -= part.node;
  return Lease(account_, part, Held::kQueue);
}

void Lease::Absorb(Lease other) {
  if (other.account_ == nullptr) return;
  if (account_ == nullptr) {
    *this = std::move(other);
    return;
  }
  other.account_ = nullptr;
  charge_.container += other.charge_.container;
  charge_.node += other.charge_.node;
}

}  // namespace purser::sidecar
