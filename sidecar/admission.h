// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a queue pair may be created, before anything is allocated:
// first the device's and the provider's own limits, then how short memory is,
// then the budget, and the share of it that the class and the client have, by
// the memory model's prediction. What is granted is a Lease. Any thread.
#pragma once

#include <array>
#include <cstdint>
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

// Bytes reserved in the ledger; returned when the lease is destroyed.
class Lease {
 public:
  Lease() = default;
  Lease(std::shared_ptr<Accounts> accounts, Owner owner, ledger::Charge charge);
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();
  // To what was really allocated. False: that does not fit; the lease stays as
  // it was and the caller must destroy the object.
  [[nodiscard]] bool Commit(ledger::Charge actual);
  ledger::Charge charge() const { return charge_; }

 private:
  std::shared_ptr<Accounts> accounts_;  // null: nothing is held
  Owner owner_;
  ledger::Charge charge_;
};

// What admission needs to know of a device.
struct DeviceTraits {
  std::string name;
  queue_memory::Provider provider = queue_memory::Provider::kUnknown;
  queue_memory::DeviceLimits limits;
  uint64_t max_qp = 0;  // 0: not known
};

struct Grant {
  Lease lease;
  queue_memory::QueueMemory predicted;  // queue pair and its completion queue
  uint32_t cqe = 0;  // entries to create the completion queue with
  DeviceTraits device;
  queue_memory::QueuePairRequest request;  // what was granted
  // Why it is less than what was wanted; the refusal of that.
  std::optional<Refusal> shrunk;
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
  // max_qp.
  std::variant<Grant, Refusal> Admit(
      const DeviceTraits& device, const queue_memory::QueuePairRequest& request,
      uint64_t live_queue_pairs, const Owner& owner = {}) const;
  // The same, or where that is refused for want of memory the deepest queues
  // that fit, of at least `least` (its depths; all else is as in `request`):
  // the send queue shrinks first, then the receive queue goes to its least.
  std::variant<Grant, Refusal> AdmitAtLeast(
      const DeviceTraits& device, const queue_memory::QueuePairRequest& request,
      const queue_memory::QueuePairRequest& least, uint64_t live_queue_pairs,
      const Owner& owner) const;

  const Accounts& accounts() const { return *accounts_; }

 private:
  Refusal RefuseByBudget(const DeviceTraits& device,
                         const queue_memory::QueuePairRequest& request,
                         const queue_memory::QueueMemory& needed,
                         const ledger::ReserveResult& result,
                         const Owner& owner) const;
  std::optional<Refusal> CheckPressure(const std::string& what,
                                       ledger::Charge charge,
                                       const ClassConfig& of) const;
  // AdmitAtLeast() of a queue pair without a send queue.
  std::variant<Grant, Refusal> AdmitReceives(
      const DeviceTraits& device, const queue_memory::QueuePairRequest& request,
      const queue_memory::QueuePairRequest& least, uint64_t live_queue_pairs,
      const Owner& owner, Refusal refusal) const;
  uint32_t LargestThatFits(const DeviceTraits& device,
                           const queue_memory::QueuePairRequest& request,
                           const Owner& owner) const;

  ledger::Ledger ledger_;
  const std::shared_ptr<Accounts> accounts_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Budget> budget_ ABSL_GUARDED_BY(mutex_);
  std::array<Pressure, 2> pressure_ ABSL_GUARDED_BY(mutex_);  // by scope
};

// What a queue pair and its completion queue cost now that they exist.
struct Actual {
  queue_memory::QueueMemory memory;
  ledger::Charge charge;  // to commit the lease to
  // Not empty: the capacities written back contradict the model; says how, for
  // the log. Count it as a model mismatch.
  std::string mismatch;
};

// The provider's rule applied to what was asked, checked against what
// ibv_create_qp wrote back to `cap` and ibv_create_cq to `cqe`: rings that
// could not hold those capacities are charged by the capacities instead, and
// capacities below what was asked are a mismatch as well. Some kernels write
// back less than the rings hold, which is none.
Actual ActualCharge(const Grant& grant, const ibv_qp_cap& cap, uint32_t cqe);

// The model's bytes in the ledger's terms.
ledger::Charge ToLedger(queue_memory::Charge charge);

}  // namespace purser::sidecar
