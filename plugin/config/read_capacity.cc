// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/read_capacity.h"

#include <limits>

#include "base/quantity.h"
#include "base/yaml_scalars.h"
#include "plugin/config/capacity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;
// 64 GiB; no pod needs its budget in larger steps.
constexpr uint64_t kLargestUnitMib = 1 << 16;
constexpr uint64_t kLargestPairUnit = 1 << 16;

// A share where it is written as one: "25%".
bool IsPercentage(base::YamlMap& map, std::string_view key) {
  return map.Text(key).ends_with('%');
}

void ReadUnit(base::YamlMap& map, QueueMemoryConfig* config) {
  uint64_t bytes = 0;
  if (!map.Bytes("unit", &bytes)) return;
  if (bytes % kMebibyte != 0 || bytes == 0 ||
      bytes / kMebibyte > kLargestUnitMib) {
    map.Fault("unit",
              "must be whole MiB from 1Mi to 64Gi, such as 16Mi, which "
              "advertises rdma/wqe-16mib in place of rdma/wqe-mib");
  } else {
    config->unit_mib = static_cast<uint32_t>(bytes / kMebibyte);
  }
}

void ReadMemoryCapacity(base::YamlMap& map, QueueMemoryConfig* config) {
  if (map.Has("capacity") && map.Has("nodeMemoryFraction"))
    map.Fault("nodeMemoryFraction",
              "capacity is given too; keep one of the two");
  double fraction = 0;
  if (map.Fraction("nodeMemoryFraction", &fraction))
    config->node_memory_fraction = fraction;
  if (IsPercentage(map, "capacity")) {
    if (map.Fraction("capacity", &fraction))
      config->node_memory_fraction = fraction;
    return;
  }
  uint64_t bytes = 0;
  if (!map.Bytes("capacity", &bytes)) return;
  config->capacity_bytes = bytes;
  const absl::StatusOr<uint32_t> units = QueueMemoryUnits(*config, 0);
  if (!units.ok()) map.Fault("capacity", std::string(units.status().message()));
}

void ReadReserve(base::YamlMap& map, QueuePairConfig* config) {
  if (IsPercentage(map, "reserve")) {
    map.Fraction("reserve", &config->reserve_fraction);
    return;
  }
  uint64_t count = 0;
  if (map.Uint("reserve", 0, std::numeric_limits<int64_t>::max(), &count))
    config->reserve = count;
}

}  // namespace

QueueMemoryConfig ReadQueueMemory(base::YamlMap map) {
  QueueMemoryConfig config;
  map.Bool("enabled", &config.enabled);
  ReadUnit(map, &config);
  ReadMemoryCapacity(map, &config);
  return config;
}

QueuePairConfig ReadQueuePairs(base::YamlMap map, bool given) {
  QueuePairConfig config;
  config.enabled = given;
  map.Bool("enabled", &config.enabled);
  uint64_t unit = config.unit;
  map.Uint("unit", 1, kLargestPairUnit, &unit);
  config.unit = static_cast<uint32_t>(unit);
  ReadReserve(map, &config);
  uint64_t count = 0;
  // What a device can have is a 32-bit number; a node has a few of them.
  constexpr uint64_t kMost = uint64_t{1} << 40;
  if (map.Uint("perDevice", 1, kMost, &count)) config.per_device = count;
  if (map.Uint("capacity", 1, kMost, &count)) {
    config.capacity = count;
    const absl::StatusOr<uint32_t> units = QueuePairUnits(config, count);
    if (!units.ok())
      map.Fault("capacity", std::string(units.status().message()));
  }
  if (map.Has("capacity") && map.Has("perDevice"))
    map.Fault("perDevice", "capacity is given too; keep one of the two");
  return config;
}

void ReadPeerCapacity(base::YamlMap& root, Config* config) {
  const bool has_memory = root.Has("queueMemory");
  config->queue_memory = ReadQueueMemory(root.Map("queueMemory"));
  if (!has_memory) config->queue_memory.enabled = false;
  config->queue_pairs =
      ReadQueuePairs(root.Map("queuePairs"), root.Has("queuePairs"));
  for (const PoolConfig& pool : config->pools) {
    auto collides = [&](std::string_view key, const auto& capacity) {
      if (capacity.enabled && pool.full_name() == capacity.full_name())
        root.Fault(key, fmt::format("{} is the name of a pool, too",
                                    pool.full_name()));
    };
    collides("queueMemory", config->queue_memory);
    collides("queuePairs", config->queue_pairs);
  }
}

}  // namespace purser::plugin
