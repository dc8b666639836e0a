// SPDX-License-Identifier: Apache-2.0
#include "plugin/make_resources.h"

#include "base/proc.h"
#include "base/status_macros.h"
#include "plugin/config/capacity.h"
#include "plugin/device_resource.h"
#include "plugin/pool_resource.h"
#include "plugin/queue_memory_resource.h"
#include "plugin/queue_pair_resource.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

absl::StatusOr<uint32_t> MemoryUnits(const Config& config) {
  PURSER_ASSIGN_OR_RETURN(const base::NodeMemory memory,
                          base::ProcReader(config.proc_root).Memory());
  absl::StatusOr<uint32_t> units =
      QueueMemoryUnits(config.queue_memory, memory.total_bytes);
  if (units.ok()) return units;
  return absl::Status(units.status().code(),
                      fmt::format("resources.queueMemory: {}",
                                  std::string(units.status().message())));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Resource>>> MakeResources(
    const Config& config, const CdiSpecs* cdi) {
  std::vector<std::unique_ptr<Resource>> resources;
  for (const PoolConfig& pool : config.pools) {
    if (!pool.advertised) continue;
    if (pool.unit == PoolUnit::kShare) {
      resources.push_back(std::make_unique<PoolResource>(pool, cdi));
    } else {
      resources.push_back(std::make_unique<DeviceResource>(pool, cdi));
    }
  }
  if (const QueueMemoryConfig& memory = config.queue_memory; memory.enabled) {
    PURSER_ASSIGN_OR_RETURN(const uint32_t units, MemoryUnits(config));
    resources.push_back(
        std::make_unique<QueueMemoryResource>(units, memory.unit_mib));
  }
  if (config.queue_pairs.enabled)
    resources.push_back(
        std::make_unique<QueuePairResource>(config.queue_pairs));
  return resources;
}

}  // namespace purser::plugin
