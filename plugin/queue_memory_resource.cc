// SPDX-License-Identifier: Apache-2.0
#include "plugin/queue_memory_resource.h"

#include <algorithm>

#include "base/quantity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr uint64_t kUnitBytes = 1 << 20;

}  // namespace

QueueMemoryResource::QueueMemoryResource(uint32_t units) : units_(units) {}

Advertisement QueueMemoryResource::Advertise(const Snapshot& snapshot) const {
  if (!snapshot.has_complete_device()) return {};
  return {{UnitRange{.first = 0, .count = units_}}};
}

absl::StatusOr<v1beta1::ContainerAllocateResponse>
QueueMemoryResource::Allocate(std::span<const std::string> ids,
                              const Snapshot& /*snapshot*/) const {
  v1beta1::ContainerAllocateResponse response;
  (*response.mutable_envs())[std::string(kQueueMemoryVariable)] =
      std::to_string(ids.size() * kUnitBytes);
  return response;
}

absl::StatusOr<uint32_t> QueueMemoryUnits(const QueueMemoryConfig& config,
                                          uint64_t node_memory_bytes) {
  const double fraction =
      config.node_memory_fraction.value_or(QueueMemoryConfig::kDefaultFraction);
  const uint64_t bytes = config.capacity_bytes.value_or(
      static_cast<uint64_t>(fraction * static_cast<double>(node_memory_bytes)));
  const uint64_t units = bytes / kUnitBytes;
  const uint32_t largest = LargestUnitCount();
  if (!config.capacity_bytes && !config.node_memory_fraction)
    return static_cast<uint32_t>(std::min<uint64_t>(units, largest));
  if (units > largest) {
    return absl::InvalidArgumentError(fmt::format(
        "resources.queueMemory: {} units of 1 MiB ({:.4g} of the node's {}) "
        "make a message of more than the {} bytes that the kubelet takes; the "
        "largest capacity that fits is {}Mi, a nodeMemoryFraction of {:.3g}",
        base::FormatCount(units),
        static_cast<double>(bytes) / static_cast<double>(node_memory_bytes),
        base::FormatBytes(node_memory_bytes),
        base::FormatCount(kKubeletMaxMessageBytes), largest,
        static_cast<double>(uint64_t{largest} * kUnitBytes) /
            static_cast<double>(node_memory_bytes)));
  }
  if (units == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "resources.queueMemory: {} is less than one unit of 1 MiB; to "
        "advertise no queue memory set enabled: false",
        base::FormatBytes(bytes)));
  }
  return static_cast<uint32_t>(units);
}

}  // namespace purser::plugin
