// SPDX-License-Identifier: Apache-2.0
//
// The queue memory that a pod may hold. Every source that gives a figure is a
// bound; all of them hold at once, so the smallest decides. Pure: what was read
// from flags, environment, cgroup and rlimit comes in as BudgetInputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cgroup.h"
#include "base/proc.h"
#include "ledger/ledger.h"

namespace purser::sidecar {

enum class BudgetSource { kExplicit, kPlugin, kCgroup, kMemlock };
const char* BudgetSourceName(
    BudgetSource source);  // "explicit", "plugin", "cgroup", "memlock"

struct Bound {
  BudgetSource source;
  uint64_t limit_bytes = 0;
  // Counts container-charged bytes alone; else container and node bytes
  // together.
  bool container_only = false;
  double fraction = 1;  // limit_bytes is this part of the figure at `origin`
  std::string origin;   // "--budget", "PURSER_QUEUE_MEMORY_BYTES",
                        // "half of /sys/fs/cgroup/memory.max"
  bool operator==(const Bound&) const = default;
};

// How many queue pairs; 1 unit of rdma/qp may be several.
struct QueuePairBound {
  uint64_t limit = 0;
  std::string origin;  // "PURSER_QUEUE_PAIRS"
  bool operator==(const QueuePairBound&) const = default;
};

struct BudgetInputs {
  std::optional<uint64_t> explicit_bytes;  // --budget or the config file
  std::string explicit_origin = "--budget";
  std::optional<std::string> plugin_bytes;  // PURSER_QUEUE_MEMORY_BYTES as is
  std::optional<std::string> plugin_queue_pairs;  // PURSER_QUEUE_PAIRS as is
  double memory_limit_fraction = 0.5;
  absl::StatusOr<base::CgroupMemory> cgroup = absl::NotFoundError("not read");
  absl::StatusOr<base::MemlockLimit> memlock = absl::NotFoundError("not read");
  // Some device's provider takes kernel memory that no cgroup is charged for:
  // the cgroup bounds nothing there, an explicit or plugin figure is needed.
  bool charges_node = false;
  // Some device's provider pins its rings in the creating process.
  bool pins_rings = false;
};

class Budget {
 public:
  const std::vector<Bound>& bounds() const { return bounds_; }
  // The smallest bound of each kind; nullptr where there is none.
  const Bound* total_bound() const;
  const Bound* container_bound() const;
  // nullopt: as many as the bytes allow.
  const std::optional<QueuePairBound>& queue_pairs() const {
    return queue_pairs_;
  }
  // Sources that gave no bound and why, one sentence each, for the log.
  const std::vector<std::string>& gaps() const { return gaps_; }
  bool operator==(const Budget&) const = default;

 private:
  friend absl::StatusOr<Budget> DetermineBudget(const BudgetInputs& inputs);
  std::vector<Bound> bounds_;
  std::optional<QueuePairBound> queue_pairs_;
  std::vector<std::string> gaps_;
};

// One line for each bound, and one for each gap.
void LogBudget(const char* event, const Budget& budget);

// What is held beyond the bounds, which were lowered since: the most that any
// of them misses.
uint64_t OvercommittedBytes(const Budget& budget,
                            const ledger::Balance& balance);

// FailedPrecondition when no source gives a budget that covers the devices:
// says what was looked at and how to give one. InvalidArgument for a malformed
// or contradictory figure (an explicit budget above what the plugin allocated,
// 0 bytes).
absl::StatusOr<Budget> DetermineBudget(const BudgetInputs& inputs);

}  // namespace purser::sidecar
