// SPDX-License-Identifier: Apache-2.0
#include "plugin/pool_resource.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plugin/device_access.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {

PoolResource::PoolResource(PoolConfig config, const CdiSpecs* cdi)
    : config_(std::move(config)), name_(config_.full_name()), cdi_(cdi) {}

Advertisement PoolResource::Advertise(const Snapshot& snapshot) const {
  const std::vector<const Device*> members = snapshot.members(name_);
  if (members.empty()) return {};
  UnitRange all{
      .first = 0,
      .count = config_.rdma_hca_max.value_or(SharesOfGidTables(members)),
      .healthy = false};
  if (all.count == 0) return {};
  all.numa_node = TopologyOf(config_, members, snapshot, all.count);
  for (const Device* device : members) {
    if (device->healthy() || !config_.checks_health()) {
      all.healthy = true;
      all.reason.clear();
      break;
    }
    all.reason += fmt::format("{}{}: {}", all.reason.empty() ? "" : "; ",
                              device->sysfs.name, device->reason);
  }
  return {{all}, {}};
}

std::string PoolResource::Note(const Snapshot& snapshot) const {
  return NoUnitsReason(name_, snapshot);
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> PoolResource::Allocate(
    std::span<const std::string> /*ids*/, const Snapshot& snapshot) const {
  v1beta1::ContainerAllocateResponse response;
  GrantAccess(config_, snapshot.members(name_), snapshot, cdi_, &response);
  return response;
}

uint32_t SharesOfGidTables(const std::vector<const Device*>& devices) {
  std::optional<uint32_t> fewest;
  for (const Device* device : devices) {
    for (const rdma::PortStatus& port : device->sysfs.ports) {
      if (port.link_layer != rdma::LinkLayer::kEthernet ||
          port.gid_table_length == 0)
        continue;
      // One pair is the node's own.
      const uint32_t shares = std::max(port.gid_table_length / 2, 2u) - 1;
      fewest = std::min(fewest.value_or(shares), shares);
    }
  }
  return fewest.value_or(PoolConfig::kDefaultShares);
}

std::string NoUnitsReason(const std::string& pool, const Snapshot& snapshot) {
  if (!snapshot.has_complete_device())
    return "no usable RDMA device on this node";
  if (!snapshot.members(pool).empty()) return "";
  if (const std::string devices = snapshot.contested_devices(pool);
      !devices.empty())
    return fmt::format(
        "all devices that it selects are selected by another pool too, and not "
        "given to it: {}; narrow the selectors or set resources.overlap",
        devices);
  if (!snapshot.selects_none(pool)) return "";
  return fmt::format("none of this node's RDMA devices ({}) is selected",
                     snapshot.device_names());
}

}  // namespace purser::plugin
