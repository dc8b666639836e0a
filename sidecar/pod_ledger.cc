// SPDX-License-Identifier: Apache-2.0
#include "sidecar/pod_ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <stop_token>
#include <utility>

#include "base/file_descriptor.h"
#include "base/logging.h"
#include "rdma/verbs.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using ledger::FileFault;

constexpr char kRemoveIt[] =
    "when no process of the pod uses it, remove it; or delete the pod, so that "
    "its controller makes a new one";

std::string WhatIsWrong(const ledger::OpenOutcome& outcome) {
  switch (outcome.fault) {
    case FileFault::kNone:
      return "nothing";
    case FileFault::kOpen:
      return fmt::format("{}; it must be readable and writable for user {}: {}",
                         rdma::ErrnoName(outcome.error), geteuid(), kRemoveIt);
    case FileFault::kNotAFile:
      return fmt::format(
          "it is no regular file; something in the pod made it: {}", kRemoveIt);
    case FileFault::kForeignOwner:
      return fmt::format(
          "it belongs to user {}, and the sidecar runs as user {}: {}",
          outcome.found, geteuid(), kRemoveIt);
    case FileFault::kInUse:
      return "another sidecar holds it: a pod has one, and a shared volume of "
             "its own";
    case FileFault::kNotALedger:
      return fmt::format("it is no ledger, and stays as it is: {}", kRemoveIt);
    case FileFault::kOtherVersion:
      return fmt::format(
          "it has version {}, and this sidecar knows version {}; processes of "
          "the pod may live by it, so it stays as it is: {}",
          outcome.found, int{PURSER_LEDGER_VERSION}, kRemoveIt);
    case FileFault::kAllocate:
      return fmt::format(
          "{} bytes cannot be allocated for it: {}; remove files from the "
          "volume, or raise sizeLimit of the pod's emptyDir",
          int{PURSER_LEDGER_BYTES}, rdma::ErrnoName(outcome.error));
    case FileFault::kCreate:
      return fmt::format("it cannot be made: {}",
                         rdma::ErrnoName(outcome.error));
  }
  return "unknown";
}

void LogOpened(const std::string& path, const ledger::OpenOutcome& outcome) {
  if (outcome.created) return base::LogInfo("ledger made", {{"file", path}});
  if (outcome.size >= PURSER_LEDGER_BYTES)
    return base::LogInfo("ledger opened", {{"file", path}});
  base::LogWarn("the ledger was truncated and is made whole",
                {{"file", path},
                 {"bytes", outcome.size},
                 {"whole", int{PURSER_LEDGER_BYTES}}});
}

}  // namespace

PodLedger::PodLedger(std::string path) : path_(std::move(path)) {
  ledger::Ledger::Format(state_);
}

PodLedger::~PodLedger() { Stop(); }

absl::StatusOr<std::unique_ptr<PodLedger>> PodLedger::Open(
    const std::string& shared_volume) {
  std::unique_ptr<PodLedger> opened(
      new PodLedger(shared_volume + "/" + ledger::kFileName));
  const base::FileDescriptor directory(
      open(shared_volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const ledger::OpenOutcome outcome = opened->file_.Open(directory.get());
  if (!outcome.ok())
    return absl::FailedPreconditionError(
        fmt::format("the ledger {} cannot be used: {}", opened->path_,
                    WhatIsWrong(outcome)));
  LogOpened(opened->path_, outcome);
  std::lock_guard lock(opened->mutex_);
  opened->adjudicator_ = std::make_unique<ledger::Adjudicator>(opened->file_);
  opened->account_ = std::make_unique<ledger::BrokeredAccount>(
      opened->state_, *opened->adjudicator_);
  // What a sidecar before this one held went with it.
  opened->adjudicator_->Publish({});
  opened->logged_ = opened->adjudicator_->counts();
  return opened;
}

void PodLedger::Start() {
  Round();
  thread_ = std::jthread([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        wakeup_.wait_for(lock, stop, kRound, [] { return false; });
      }
      if (!stop.stop_requested()) Round();
    }
  });
}

void PodLedger::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void PodLedger::Round() {
  std::lock_guard lock(mutex_);
  const ledger::Findings findings = account_->Adjudicate();
  Log(findings);
  last_ = findings;
}

// What changed since the last round, which a Reserve may have found.
void PodLedger::Log(const ledger::Findings& findings) {
  const ledger::Counts counts = adjudicator_->counts();
  if (counts.reclaimed > logged_.reclaimed)
    base::LogInfo("leases of processes that ended were returned",
                  {{"processes", counts.reclaimed - logged_.reclaimed}});
  // A process that goes on scribbling fills no log: each power of two.
  if (std::bit_width(counts.repaired) > std::bit_width(logged_.repaired))
    base::LogWarn(
        "the ledger was damaged by a process of the pod, and is repaired",
        {{"file", path_}, {"words_so_far", counts.repaired}});
  logged_ = counts;
  if (findings.truncated)
    base::LogWarn(
        "the ledger was truncated by a process of the pod, and is made whole",
        {{"file", path_}});
  if (findings.error == 0 &&
      findings.leases.slots_unknown > last_.leases.slots_unknown)
    base::LogWarn(
        "the ledger was damaged: what some living processes hold is unknown, "
        "and nothing is granted until they end",
        {{"file", path_}, {"processes", findings.leases.slots_unknown}});
  if (findings.error != 0 && findings.error != last_.error)
    base::LogWarn(
        findings.error == ENOSPC
            ? "the shared volume has no room for the whole ledger: nothing is "
              "granted until it has; remove files from the volume"
            : "the ledger cannot be read or written: nothing is granted until "
              "it can",
        {{"file", path_}, {"error", rdma::ErrnoName(findings.error)}});
  if (findings.displaced && !last_.displaced)
    base::LogError(
        "the ledger's name was given to another file, or removed: applications "
        "that start now do not find this one. Delete the pod",
        {{"file", path_}});
}

PodLedger::Report PodLedger::report() const {
  std::lock_guard lock(mutex_);
  return {.last = last_, .counts = adjudicator_->counts()};
}

void PodLedger::SetBounds(uint64_t total_bound, uint64_t container_bound,
                          uint64_t lease_bound) {
  std::lock_guard lock(mutex_);
  account_->SetBounds(total_bound, container_bound, lease_bound);
}

ledger::ReserveResult PodLedger::Reserve(ledger::Charge charge) {
  std::lock_guard lock(mutex_);
  return account_->Reserve(charge);
}

ledger::ReserveResult PodLedger::Commit(ledger::Charge reserved,
                                        ledger::Charge actual) {
  std::lock_guard lock(mutex_);
  return account_->Commit(reserved, actual);
}

void PodLedger::Release(ledger::Charge charge) {
  std::lock_guard lock(mutex_);
  account_->Release(charge);
}

ledger::Charge PodLedger::Leased() const {
  std::lock_guard lock(mutex_);
  const ledger::Amounts known = adjudicator_->Look().known;
  return {.container = known[PURSER_LEDGER_CONTAINER_BYTES],
          .node = known[PURSER_LEDGER_NODE_BYTES]};
}

}  // namespace purser::sidecar
