// SPDX-License-Identifier: Apache-2.0
#include "sidecar/budget_inputs.h"

#include <utility>

#include "base/cgroup.h"
#include "base/proc.h"
#include "queue_memory/registry.h"

namespace purser::sidecar {
BudgetInputs ReadBudgetInputs(const Config& config,
                              std::optional<std::string> queue_memory_bytes,
                              std::span<const DeviceTraits> devices) {
  BudgetInputs inputs;
  inputs.explicit_bytes = config.budget_bytes;
  if (config.budget_bytes.has_value())
    inputs.explicit_origin = config.budget_origin;
  inputs.plugin_bytes = std::move(queue_memory_bytes);
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

}  // namespace purser::sidecar
