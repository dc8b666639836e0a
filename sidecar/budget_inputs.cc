// SPDX-License-Identifier: Apache-2.0
#include "sidecar/budget_inputs.h"

#include <utility>

#include "base/cgroup.h"
#include "base/proc.h"
#include "queue_memory/queue_memory.h"

namespace purser::sidecar {
namespace {

// One that every device takes: who pays does not depend on the size.
constexpr queue_memory::QueuePairRequest kSmall = {
    .max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1};

}  // namespace

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
    const queue_memory::QueueMemory memory =
        queue_memory::QueuePairMemory(device.provider, device.limits, kSmall);
    inputs.charges_node |= memory.total().node > 0;
    // Rings in the process's own memory are pinned for the device.
    inputs.pins_rings |= memory.send.container > 0;
  }
  return inputs;
}

}  // namespace purser::sidecar
