// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sidecar/admission.h"
#include "sidecar/budget.h"
#include "sidecar/config.h"

namespace purser::sidecar {

// What DetermineBudget() decides by, read now: the config, the environment
// variable PURSER_QUEUE_MEMORY_BYTES as it is, this process's cgroup and
// memlock limit, and who pays for the queues of `devices` by the memory model.
BudgetInputs ReadBudgetInputs(const Config& config,
                              std::optional<std::string> queue_memory_bytes,
                              std::span<const DeviceTraits> devices);

}  // namespace purser::sidecar
