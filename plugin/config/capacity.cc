// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/capacity.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/quantity.h"
#include "plugin/config/unit_limit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

// The smallest unit, of those twice as large as another, with which `amount` is
// a number of units that the kubelet takes.
uint64_t UnitThatFits(uint64_t amount, uint64_t unit) {
  while (amount / unit > LargestUnitCount()) unit *= 2;
  return unit;
}

std::string TooManyUnits(uint64_t units, std::string_view unit) {
  return fmt::format(
      "{} units of {} make a message of more than the {} bytes that the "
      "kubelet takes",
      base::FormatCount(units), unit,
      base::FormatCount(kKubeletMaxMessageBytes));
}

uint64_t Reserved(const QueuePairConfig& config, uint64_t total) {
  return config.reserve.value_or(static_cast<uint64_t>(
      std::ceil(static_cast<double>(total) * config.reserve_fraction)));
}

// The largest total of which no more than `available` are left.
uint64_t TotalFor(const QueuePairConfig& config, uint64_t available) {
  if (config.reserve) return available + *config.reserve;
  return static_cast<uint64_t>(static_cast<double>(available) /
                               (1 - config.reserve_fraction));
}

}  // namespace

absl::StatusOr<uint32_t> QueueMemoryUnits(const QueueMemoryConfig& config,
                                          uint64_t node_memory_bytes) {
  const double fraction =
      config.node_memory_fraction.value_or(QueueMemoryConfig::kDefaultFraction);
  const uint64_t bytes = config.capacity_bytes.value_or(
      static_cast<uint64_t>(fraction * static_cast<double>(node_memory_bytes)));
  const uint64_t units = bytes / (config.unit_mib * kMebibyte);
  const uint32_t largest = LargestUnitCount();
  if (!config.capacity_bytes && !config.node_memory_fraction)
    return static_cast<uint32_t>(std::min<uint64_t>(units, largest));
  if (units > largest) {
    const uint64_t mib = uint64_t{largest} * config.unit_mib;
    const uint64_t unit = UnitThatFits(bytes / kMebibyte, config.unit_mib);
    const std::string share =
        config.capacity_bytes
            ? ""
            : fmt::format(", {:.3g} of the node's {}",
                          static_cast<double>(mib * kMebibyte) /
                              static_cast<double>(node_memory_bytes),
                          base::FormatBytes(node_memory_bytes));
    return absl::InvalidArgumentError(fmt::format(
        "{}; the largest capacity that fits is {}Mi{}; to advertise all of it "
        "in larger units, as rdma/wqe-{}mib, set unit: {}Mi",
        TooManyUnits(units, fmt::format("{} MiB", config.unit_mib)), mib, share,
        unit, unit));
  }
  if (units == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is less than {}Mi, one unit; to advertise no queue memory set "
        "enabled: false",
        base::FormatBytes(bytes), config.unit_mib));
  }
  return static_cast<uint32_t>(units);
}

absl::StatusOr<uint32_t> QueuePairUnits(const QueuePairConfig& config,
                                        uint64_t total) {
  const uint64_t reserved = std::min(total, Reserved(config, total));
  const uint64_t units = (total - reserved) / config.unit;
  const uint32_t largest = LargestUnitCount();
  if (units > largest) {
    const uint64_t unit = UnitThatFits(total - reserved, config.unit);
    return absl::OutOfRangeError(fmt::format(
        "{}; the largest capacity that fits is {}; to advertise all of it in "
        "larger units, as rdma/qp-{}, set unit: {}",
        TooManyUnits(units, fmt::format("{} queue pairs", config.unit)),
        TotalFor(config, uint64_t{largest} * config.unit), unit, unit));
  }
  if (units == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "{} queue pairs less {} in reserve are less than one unit of {}; to "
        "advertise none set enabled: false",
        base::FormatCount(total), base::FormatCount(reserved), config.unit));
  }
  return static_cast<uint32_t>(units);
}

}  // namespace purser::plugin
