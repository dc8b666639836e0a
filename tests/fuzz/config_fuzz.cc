// SPDX-License-Identifier: Apache-2.0
//
// The device plugin's configuration, in each of its forms. What is accepted can
// be advertised.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plugin/config/capacity.h"
#include "plugin/config/config.h"
#include "plugin/config/unit_limit.h"
#include "tests/fuzz/fuzz.h"

namespace purser::plugin {
namespace {

constexpr uint64_t kNodeMemory = uint64_t{64} << 30;

void Fuzz(std::string_view text) {
  const absl::StatusOr<Config> config = ParseConfig("config.yaml", text);
  if (!config.ok()) {
    fuzz::Require(!config.status().message().empty());
    return;
  }
  for (const PoolConfig& pool : config->pools) {
    fuzz::Require(pool.rdma_hca_max.value_or(0) <= LargestUnitCount());
    if (!pool.advertised) continue;
    fuzz::Require(CheckResourceName(pool.resource_name).ok());
    fuzz::Require(CheckResourcePrefix(pool.resource_prefix).ok());
  }
  if (config->queue_memory.enabled) {
    const auto units = QueueMemoryUnits(config->queue_memory, kNodeMemory);
    fuzz::Require(!units.ok() || *units <= LargestUnitCount());
  }
  const rdma::SysfsDevice device{.name = "mlx5_0"};
  for (const PoolConfig& pool : config->pools) {
    for (const Selectors& selectors : pool.selectors)
      Matches(selectors, pool.reach, device, NodeNetwork());
  }
}

}  // namespace
}  // namespace purser::plugin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  purser::plugin::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
