// SPDX-License-Identifier: Apache-2.0
//
// Bytes reserved in the ledger, for an object that is to be made or exists;
// returned when the lease is destroyed. Owned by what owns the object. Not
// thread-safe.
#pragma once

#include <memory>
#include <optional>

#include "ledger/ledger.h"
#include "sidecar/accounts.h"

namespace purser::sidecar {

class Lease {
 public:
  Lease() = default;
  // Of what was reserved.
  Lease(std::shared_ptr<const OwnerAccount> account, ledger::Charge charge,
        Held held = Held::kQueuePair);
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  // To what was really allocated. False: that does not fit; the lease stays as
  // it was and the caller must destroy the object.
  [[nodiscard]] bool Commit(ledger::Charge actual);
  // Another of the same owner, for a queue; nullopt where that is refused.
  std::optional<Lease> Beside(ledger::Charge charge) const;
  // A part of it, at most all, for a queue beside the queue pair.
  Lease Split(ledger::Charge part);
  // Takes over what another of the same owner holds for a queue.
  void Absorb(Lease other);
  ledger::Charge charge() const { return charge_; }

 private:
  std::shared_ptr<const OwnerAccount> account_;  // null: nothing is held
  ledger::Charge charge_;
  Held held_ = Held::kQueuePair;
};

}  // namespace purser::sidecar
