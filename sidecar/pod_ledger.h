// SPDX-License-Identifier: Apache-2.0
//
// The pod's account, with its file in the shared volume (docs/ledger.md): what
// the sidecar holds is granted beside the leases that applications have in the
// file. Reserve, commit and release take turns behind one lock, which is held
// for some system calls on a file in memory. A thread of its own looks for the
// dead and for damage; what it finds is logged when it changes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "ledger/adjudicator.h"
#include "ledger/brokered_account.h"
#include "ledger/ledger.h"
#include "ledger/ledger_file.h"

namespace purser::sidecar {

class PodLedger final : public ledger::Gate {
 public:
  static constexpr std::chrono::milliseconds kRound{200};

  // Opens the file in `shared_volume`, or makes it, or repairs it. Says what
  // is in its place otherwise, and what to do; it stays as it is.
  static absl::StatusOr<std::unique_ptr<PodLedger>> Open(
      const std::string& shared_volume);
  ~PodLedger();

  // The account, for all who reserve. As long as this lives.
  ledger::Ledger ledger() { return ledger::Ledger(&state_, this); }

  // Starts the thread, when the budget is set.
  void Start();
  void Stop();
  // What the thread does, once.
  void Round();

  struct Report {
    ledger::Findings last;  // of the last round
    ledger::Counts counts;
  };
  Report report() const;

  // What ledger() does.
  void SetBounds(uint64_t total_bound, uint64_t container_bound,
                 uint64_t lease_bound) override;
  ledger::ReserveResult Reserve(ledger::Charge charge) override;
  ledger::ReserveResult Commit(ledger::Charge reserved,
                               ledger::Charge actual) override;
  void Release(ledger::Charge charge) override;
  ledger::Charge Leased() const override;

 private:
  explicit PodLedger(std::string path);
  void Log(const ledger::Findings& findings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  ledger::LedgerState state_;
  ledger::LedgerFile file_;
  mutable std::mutex mutex_;
  std::unique_ptr<ledger::Adjudicator> adjudicator_ ABSL_PT_GUARDED_BY(mutex_);
  std::unique_ptr<ledger::BrokeredAccount> account_ ABSL_PT_GUARDED_BY(mutex_);
  ledger::Findings last_ ABSL_GUARDED_BY(mutex_);
  ledger::Counts logged_ ABSL_GUARDED_BY(mutex_);
  std::condition_variable_any wakeup_;
  std::jthread thread_;
};

}  // namespace purser::sidecar
