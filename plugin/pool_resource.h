// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/cdi_specs.h"
#include "plugin/config/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// rdma/<pool> where a unit is a share: every share gives access to all complete
// devices of the pool. No device: no unit. All devices unhealthy: all units
// unhealthy.
class PoolResource : public Resource {
 public:
  // `cdi` outlives it, and may be null.
  explicit PoolResource(PoolConfig config, const CdiSpecs* cdi = nullptr);

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override;
  std::string Note(const Snapshot& snapshot) const override;
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override;

 private:
  const PoolConfig config_;
  const std::string name_;
  const CdiSpecs* const cdi_;
};

// As many shares as the GID tables of the devices have room for: a container's
// netdev takes an entry for RoCE v1 and one for v2 of each of its addresses.
// Devices without Ethernet ports do not count; without any the default holds.
uint32_t SharesOfGidTables(const std::vector<const Device*>& devices);

// Why a pool has no unit; "" where it has a device.
std::string NoUnitsReason(const std::string& pool, const Snapshot& snapshot);

}  // namespace purser::plugin
