// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plugin/config/config.h"

namespace purser::plugin {

// A device that two pools select.
struct Overlap {
  std::string device;
  std::string first_pool, later_pool;  // in the order of the configuration
  bool operator==(const Overlap&) const = default;
};

struct PoolAssignment {
  // Of each pool that is advertised, by its resource's name: indices into the
  // devices.
  std::map<std::string, std::vector<size_t>> pools;
  std::vector<Overlap> overlaps;
};

// Which pool has which device, by the configuration alone. `devices` may hold
// nullptr, for those that no pool may have yet.
PoolAssignment AssignPools(const std::vector<PoolConfig>& pools,
                           OverlapPolicy policy,
                           const std::vector<const rdma::SysfsDevice*>& devices,
                           const NodeNetwork& network);

// InvalidArgument, with all overlaps, where the policy refuses them.
absl::Status CheckOverlaps(OverlapPolicy policy,
                           const std::vector<Overlap>& overlaps);

// Whether the pool selects the device, whatever others do.
bool Selects(const PoolConfig& pool, const rdma::SysfsDevice& device,
             const NodeNetwork& network);

}  // namespace purser::plugin
