// SPDX-License-Identifier: Apache-2.0
#include "plugin/queue_pair_resource.h"

#include <set>
#include <utility>

#include "plugin/config/capacity.h"
#include "plugin/config/unit_limit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// Those that containers can get; all complete ones where there is no pool.
std::vector<const Device*> UsableDevices(const Snapshot& snapshot) {
  std::set<size_t> in_pools;
  for (const auto& [name, members] : snapshot.pools)
    in_pools.insert(members.begin(), members.end());
  std::vector<const Device*> devices;
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    const Device& device = snapshot.devices[i];
    if (snapshot.pools.empty() ? device.health != DeviceHealth::kIncomplete
                               : in_pools.contains(i))
      devices.push_back(&device);
  }
  return devices;
}

}  // namespace

QueuePairResource::QueuePairResource(QueuePairConfig config)
    : config_(std::move(config)), name_(config_.full_name()) {}

QueuePairResource::Count QueuePairResource::CountAll(
    const Snapshot& snapshot) const {
  Count count;
  const std::vector<const Device*> devices = UsableDevices(snapshot);
  if (devices.empty()) return count;
  if (config_.capacity) return {.total = *config_.capacity};
  for (const Device* device : devices) {
    if (device->max_qp) {
      count.total += *device->max_qp;
    } else if (config_.per_device) {
      count.total += *config_.per_device;
      count.asked_for = true;
    } else {
      count.unknown +=
          fmt::format("{}{} ({})", count.unknown.empty() ? "" : ", ",
                      device->sysfs.name, device->max_qp_unknown);
    }
  }
  return count;
}

Advertisement QueuePairResource::Advertise(const Snapshot& snapshot) const {
  absl::StatusOr<uint32_t> units =
      QueuePairUnits(config_, CountAll(snapshot).total);
  if (absl::IsOutOfRange(units.status())) units = LargestUnitCount();
  if (!units.ok()) return {};
  return {{UnitRange{.first = 0, .count = *units}}, {}};
}

std::string QueuePairResource::Note(const Snapshot& snapshot) const {
  if (UsableDevices(snapshot).empty())
    return "no usable RDMA device on this node";
  const Count count = CountAll(snapshot);
  std::string note;
  if (!count.unknown.empty())
    note = fmt::format(
        "not counted, since max_qp is not known: {}; let the plugin open "
        "devices, or set resources.queuePairs.perDevice",
        count.unknown);
  const absl::StatusOr<uint32_t> units = QueuePairUnits(config_, count.total);
  if (!units.ok() && count.total > 0)
    note += fmt::format("{}{}", note.empty() ? "" : "; ",
                        std::string(units.status().message()));
  return note;
}

absl::Status QueuePairResource::Fits(const Snapshot& snapshot) const {
  const Count count = CountAll(snapshot);
  const absl::Status status = QueuePairUnits(config_, count.total).status();
  if (!absl::IsOutOfRange(status)) return absl::OkStatus();
  return count.asked_for ? absl::InvalidArgumentError(status.message())
                         : status;
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> QueuePairResource::Allocate(
    std::span<const std::string> ids, const Snapshot& /*snapshot*/) const {
  v1beta1::ContainerAllocateResponse response;
  (*response.mutable_envs())[std::string(kQueuePairsVariable)] =
      std::to_string(ids.size() * config_.unit);
  return response;
}

}  // namespace purser::plugin
