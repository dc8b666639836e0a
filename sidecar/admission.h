// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a queue pair may be created, before anything is allocated:
// first the device's and the provider's own limits, then how short memory is,
// then the budget, and the share of it that the class and the client have, by
// the memory model's prediction. What is granted is a Lease. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "ledger/ledger.h"
#include "queue_memory/queue_memory.h"
#include "rdma/verbs.h"
#include "sidecar/accounts.h"
#include "sidecar/budget.h"
#include "sidecar/completion_choice.h"
#include "sidecar/lease.h"
#include "sidecar/pressure.h"

namespace purser::sidecar {

enum class RefusalReason {
  kBudget,
  kDeviceLimit,
  kInvalid,
  kCreateFailed,
  kQueuePairCount,
  kPressure,
  kClassShare,
};
// The `reason` label of purser_admissions_total: "budget", "device_limit",
// "invalid", "create_failed", "qp_count", "pressure",
// "class_share".
const char* RefusalReasonName(RefusalReason reason);

// Why a creation was refused; nothing was allocated. Bytes as the refusing
// bound counts them.
struct Refusal {
  RefusalReason reason = RefusalReason::kBudget;
  queue_memory::QueueMemory needed;  // reason kBudget
  uint64_t needed_bytes = 0, used_bytes = 0, budget_bytes = 0;
  BudgetSource bound = BudgetSource::kExplicit;
  uint32_t largest_max_send_wr = 0;  // 0: none fits
  // "max_qp_wr", an errno's name, "PURSER_QUEUE_PAIRS", "node memory:
  // critical", "class core"
  std::string limit;
  uint64_t limit_value = 0, asked_value = 0;
  std::string remedy;
  std::string message;  // the whole arithmetic, one line, for people
};

// What admission needs to know of a device.
struct DeviceTraits {
  std::string name;
  queue_memory::Provider provider = queue_memory::Provider::kUnknown;
  queue_memory::DeviceLimits limits;
  uint64_t max_qp = 0;  // 0: not known
};

struct Grant {
  Lease lease;                           // of all of it
  queue_memory::QueueMemory queue_pair;  // predicted, by itself
  CompletionChoice completion;
  // Both: the queue pair, and what its completion queue costs more than now.
  queue_memory::QueueMemory predicted;
  DeviceTraits device;
  queue_memory::QueuePairRequest request;  // what was granted
  // Why it is less than what was wanted; the refusal of that.
  std::optional<Refusal> shrunk;
};

struct SharedReceiveGrant {
  Lease lease;
  queue_memory::QueueMemory predicted;
};

class Admission {
 public:
  // `classes` were completed.
  Admission(ledger::Ledger ledger, Budget budget,
            ClassesConfig classes = {.classes = {{.name = kDefaultClass}}});

  // In force from its return on, as the ledger's bounds. One below what is in
  // use lets all that exists live; nothing grows until enough was released.
  void SetBudget(Budget budget);
  std::shared_ptr<const Budget> budget() const;
  uint64_t OvercommittedBytes() const;
  void SetPressure(PressureScope scope, Pressure pressure);
  Pressure pressure(PressureScope scope) const;

  // `live_queue_pairs`: how many this sidecar has on the device, against
  // max_qp. `offer`: must not change before the grant's choice was made use of.
  std::variant<Grant, Refusal> Admit(
      const DeviceTraits& device, const queue_memory::QueuePairRequest& request,
      uint64_t live_queue_pairs, const Owner& owner = {},
      const CompletionOffer& offer = {}) const;
  // The same, or where that is refused for want of memory the deepest queues
  // that fit, of at least `least` (its depths; all else is as in `request`):
  // the send queue shrinks first, then the receive queue goes to its least.
  std::variant<Grant, Refusal> AdmitAtLeast(
      const DeviceTraits& device, const queue_memory::QueuePairRequest& request,
      const queue_memory::QueuePairRequest& least, uint64_t live_queue_pairs,
      const Owner& owner, const CompletionOffer& offer = {}) const;

  // A shared receive queue, which is no queue pair of rdma/qp units.
  std::variant<SharedReceiveGrant, Refusal> AdmitSharedReceiveQueue(
      const DeviceTraits& device,
      const queue_memory::SharedReceiveQueueRequest& request,
      const Owner& owner) const;

  Accounts& accounts() const { return *accounts_; }

 private:
  // What a request needs.
  struct Needed {
    queue_memory::QueueMemory queue_pair, total;
    CompletionChoice completion;
  };
  struct Asked {
    const DeviceTraits& device;
    uint64_t live_queue_pairs;
    const Owner& owner;
    const CompletionOffer& offer;
  };
  static Needed NeededBy(const DeviceTraits& device,
                         const queue_memory::QueuePairRequest& request,
                         const CompletionOffer& offer);
  std::variant<Grant, Refusal> Admit(
      const Asked& asked, const queue_memory::QueuePairRequest& request) const;
  // What is to be reserved, and for whom; of an existing class.
  struct Wanted {
    std::string what;  // for messages
    const Owner& owner;
    const queue_memory::QueueMemory& needed;
    Held held = Held::kQueuePair;
    queue_memory::QueuePairRequest request;  // for advice
    // That would fit; 0: none, or it has no send queue.
    std::function<uint32_t()> largest_send_wr;
  };
  std::variant<Lease, Refusal> Reserve(const Wanted& wanted) const;
  Refusal RefuseByBudget(const Wanted& wanted,
                         const ledger::ReserveResult& result) const;
  std::optional<Refusal> CheckPressure(const std::string& what,
                                       ledger::Charge charge,
                                       const ClassConfig& of) const;
  Refusal NoSuchClass(const std::string& what, const std::string& name) const;
  // AdmitAtLeast() of a queue pair without a send queue.
  std::variant<Grant, Refusal> AdmitReceives(
      const Asked& asked, const queue_memory::QueuePairRequest& request,
      const queue_memory::QueuePairRequest& least, Refusal refusal) const;
  // The largest depth with which the request fits, all else as it is.
  uint32_t LargestThatFits(const Asked& asked,
                           const queue_memory::QueuePairRequest& request,
                           uint32_t queue_memory::QueuePairRequest::*depth,
                           uint32_t most) const;
  uint32_t LargestSendWr(const Asked& asked,
                         const queue_memory::QueuePairRequest& request) const;

  ledger::Ledger ledger_;
  const std::shared_ptr<Accounts> accounts_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Budget> budget_ ABSL_GUARDED_BY(mutex_);
  std::array<Pressure, 2> pressure_ ABSL_GUARDED_BY(mutex_);  // by scope
};

// The model's bytes in the ledger's terms.
ledger::Charge ToLedger(queue_memory::Charge charge);

}  // namespace purser::sidecar
