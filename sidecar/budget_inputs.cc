// SPDX-License-Identifier: Apache-2.0
#include "sidecar/budget_inputs.h"

#include <utility>

#include "base/cgroup.h"
#include "base/proc.h"
#include "base/status_macros.h"
#include "queue_memory/registry.h"

namespace purser::sidecar {

BudgetInputs ReadBudgetInputs(const Config& config,
                              const Environment& environment,
                              std::span<const DeviceTraits> devices) {
  BudgetInputs inputs;
  inputs.explicit_bytes = config.budget_bytes;
  if (config.budget_bytes.has_value())
    inputs.explicit_origin = config.budget_origin;
  inputs.plugin_bytes = environment.queue_memory_bytes;
  inputs.plugin_queue_pairs = environment.queue_pairs;
  inputs.memory_limit_fraction = config.memory_limit_fraction;
  inputs.cgroup =
      base::CgroupReader(config.cgroup_root, config.proc_root).Memory();
  inputs.memlock = base::ProcReader(config.proc_root).Memlock();
  for (const DeviceTraits& device : devices) {
    const queue_memory::ProviderTraits& traits =
        queue_memory::TraitsOf(device.provider);
    inputs.charges_node |= traits.charges_node;
    inputs.pins_rings |= traits.pins_rings;
  }
  return inputs;
}

absl::StatusOr<base::CgroupUsage> ReadContainerUsage(const Config& config) {
  PURSER_ASSIGN_OR_RETURN(
      const base::CgroupMemory memory,
      base::CgroupReader(config.cgroup_root, config.proc_root).Memory());
  return base::ReadCgroupUsage(memory);
}

absl::StatusOr<LimitSources::Node> ReadNodeUsage(const Config& config) {
  PURSER_ASSIGN_OR_RETURN(const base::NodeMemory memory,
                          base::ProcReader(config.proc_root).Memory());
  LimitSources::Node node{.total_bytes = memory.total_bytes,
                          .available_bytes = memory.available_bytes};
  // Not every kernel has it.
  const auto stall =
      base::ReadMemoryStall(config.proc_root + "/pressure/memory");
  if (stall.ok()) node.stall = *stall;
  return node;
}

}  // namespace purser::sidecar
