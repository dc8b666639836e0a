// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sidecar/admission.h"
#include "sidecar/budget.h"
#include "sidecar/config.h"
#include "sidecar/limits_watch.h"

namespace purser::sidecar {

// Of the environment, as it is; read once, in main().
struct Environment {
  std::optional<std::string> queue_memory_bytes;  // PURSER_QUEUE_MEMORY_BYTES
  std::optional<std::string> queue_pairs;         // PURSER_QUEUE_PAIRS
};

// What DetermineBudget() decides by, read now: the config, the environment,
// this process's cgroup and memlock limit, and who pays for the queues of
// `devices` by the memory model.
BudgetInputs ReadBudgetInputs(const Config& config,
                              const Environment& environment,
                              std::span<const DeviceTraits> devices);

// Where LimitsWatch looks, under the config's roots.
absl::StatusOr<base::CgroupUsage> ReadContainerUsage(const Config& config);
absl::StatusOr<LimitSources::Node> ReadNodeUsage(const Config& config);

}  // namespace purser::sidecar
