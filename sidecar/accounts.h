// SPDX-License-Identifier: Apache-2.0
//
// The pod's ledger, divided among classes and clients. What was promised to one
// (a class's floor, a client's guarantee) is never given to another; what is
// promised to nobody goes to who asks first, but a class that is above its fair
// share (its floor and, by weight, its part of the rest) gets at most half of
// what is left of it, so that there is always something for the others. Any
// thread; leases keep it alive.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "ledger/ledger.h"
#include "queue_memory/fit.h"
#include "sidecar/classes.h"

namespace purser::sidecar {

// For whom bytes are held.
struct Owner {
  std::string class_name = kDefaultClass;
  std::string client;  // its name
  std::string client_id;
  auto operator<=>(const Owner&) const = default;
};

class Accounts;

// What is the same for all that is held for one owner.
struct OwnerAccount : Owner {
  std::shared_ptr<Accounts> accounts;
};

// What bytes are held for.
enum class Held : uint8_t {
  kQueuePair,  // counted against rdma/qp units, too
  kQueue,      // a queue that queue pairs share
};

// Bytes of the tighter bound.
struct ClassUse {
  std::string name;
  bool core = false;
  uint64_t floor_bytes = 0, fair_bytes = 0, max_bytes = 0;
  uint64_t used_bytes = 0;
};

// Why an account refuses what the ledger would take.
struct ShareRefusal {
  enum class Kind { kNone, kPromised, kMaxShare, kFairShare };
  Kind kind = Kind::kNone;
  uint64_t needed = 0, allowed = 0;  // bytes
  uint64_t used = 0, share = 0;      // of the class
  uint64_t promised = 0;             // to others, and not used by them yet
  std::string promised_to;           // "class core, client storage"
};

class Accounts : public std::enable_shared_from_this<Accounts> {
 public:
  // `config` was completed.
  Accounts(ledger::Ledger ledger, ClassesConfig config);

  struct Result {
    ledger::ReserveResult ledger;
    ShareRefusal share;
    bool ok() const {
      return ledger.ok() && share.kind == ShareRefusal::Kind::kNone;
    }
  };
  Result Reserve(const Owner& owner, ledger::Charge charge,
                 Held held = Held::kQueuePair);
  // As the ledger's. What really was allocated is not measured by shares again.
  bool Commit(const Owner& owner, ledger::Charge reserved,
              ledger::Charge actual);
  void Release(const Owner& owner, ledger::Charge charge,
               Held held = Held::kQueuePair);

  // One object for all that is held for the owner. Of Accounts that are shared.
  std::shared_ptr<const OwnerAccount> AccountOf(const Owner& owner);
  // What the owner could reserve now.
  queue_memory::Headroom HeadroomOf(const Owner& owner) const;
  std::vector<ClassUse> Use() const;
  const ClassesConfig& config() const { return config_; }

 private:
  // A bound; shares are parts of each.
  struct Basis {
    bool container = false;  // on container-charged bytes alone
    uint64_t bound = 0, free = 0;
    uint64_t Count(ledger::Charge charge) const {
      return container ? charge.container : charge.total();
    }
  };
  // Those there are.
  std::vector<Basis> bases() const;
  // What every bound allows of a charge: the first refusal, or where there is
  // none whether all had room.
  ShareRefusal JudgeAll(const Owner& owner, ledger::Charge charge) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t FairShare(const ClassConfig& of, const Basis& basis) const;
  // The most that the owner may take; with needed > that, why.
  ShareRefusal Judge(const Owner& owner, uint64_t needed,
                     const Basis& basis) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // In the ledger.
  ledger::ReserveResult Take(ledger::Charge charge, Held held);
  void GiveBack(ledger::Charge charge, Held held);
  void Add(const Owner& owner, ledger::Charge charge)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Subtract(const Owner& owner, ledger::Charge charge)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ledger::Ledger ledger_;
  const ClassesConfig config_;
  mutable std::mutex mutex_;
  std::map<std::string, ledger::Charge> by_class_ ABSL_GUARDED_BY(mutex_);
  // Of clients with a guarantee alone.
  std::map<std::string, ledger::Charge> by_client_ ABSL_GUARDED_BY(mutex_);
  std::map<Owner, std::weak_ptr<const OwnerAccount>> owners_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
