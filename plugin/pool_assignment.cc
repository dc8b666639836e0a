// SPDX-License-Identifier: Apache-2.0
#include "plugin/pool_assignment.h"

#include <algorithm>

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {

bool Selects(const PoolConfig& pool, const rdma::SysfsDevice& device,
             const NodeNetwork& network) {
  auto matches = [&](const Selectors& selectors) {
    return Matches(selectors, pool.reach, device, network);
  };
  if (std::any_of(pool.exclude.begin(), pool.exclude.end(), matches))
    return false;
  return pool.selectors.empty() ? matches({})
                                : std::any_of(pool.selectors.begin(),
                                              pool.selectors.end(), matches);
}

absl::Status CheckOverlaps(OverlapPolicy policy,
                           const std::vector<Overlap>& overlaps) {
  if (policy != OverlapPolicy::kRefuse || overlaps.empty())
    return absl::OkStatus();
  std::string text;
  for (const Overlap& overlap : overlaps)
    text +=
        fmt::format("{}{} is selected by {} and {}", text.empty() ? "" : ", ",
                    overlap.device, overlap.first_pool, overlap.later_pool);
  return absl::InvalidArgumentError(fmt::format(
      "resources.overlap is refuse, and {}: narrow the selectors, or set it to "
      "first or allow",
      text));
}

PoolAssignment AssignPools(const std::vector<PoolConfig>& pools,
                           OverlapPolicy policy,
                           const std::vector<const rdma::SysfsDevice*>& devices,
                           const NodeNetwork& network) {
  PoolAssignment assignment;
  for (const PoolConfig& pool : pools)
    if (pool.advertised) assignment.pools[pool.full_name()];
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == nullptr) continue;
    std::vector<const PoolConfig*> takers;
    for (const PoolConfig& pool : pools)
      if (Selects(pool, *devices[i], network)) takers.push_back(&pool);
    for (size_t taker = 0; taker < takers.size(); ++taker) {
      if (taker > 0) {
        assignment.overlaps.push_back({devices[i]->name, takers[0]->full_name(),
                                       takers[taker]->full_name()});
      }
      const bool has_it = policy == OverlapPolicy::kAllow ||
                          (policy == OverlapPolicy::kFirstWins && taker == 0) ||
                          takers.size() == 1;
      if (has_it && takers[taker]->advertised)
        assignment.pools[takers[taker]->full_name()].push_back(i);
    }
  }
  return assignment;
}

}  // namespace purser::plugin
