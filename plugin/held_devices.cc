// SPDX-License-Identifier: Apache-2.0
#include "plugin/held_devices.h"

#include <algorithm>
#include <set>
#include <string>

#include "plugin/device_access.h"

namespace purser::plugin {
namespace {

// Whether one of a pool's ids is of the device: its own, or of a share of it.
bool AnyIsOf(const std::set<std::string>& ids, PoolUnit unit,
             const std::string& device_id) {
  if (unit == PoolUnit::kDevice) return ids.contains(device_id);
  return std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
    return id.substr(0, id.rfind('-')) == device_id;
  });
}

}  // namespace

std::vector<size_t> UnassignedElsewhere(const Snapshot& snapshot) {
  std::set<size_t> assigned;
  for (const auto& [name, members] : snapshot.pools)
    assigned.insert(members.begin(), members.end());
  std::vector<size_t> found;
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (snapshot.devices[i].health == DeviceHealth::kOtherNamespace &&
        !assigned.contains(i))
      found.push_back(i);
  }
  return found;
}

void AssignHeldDevices(const HeldUnits& held,
                       const std::vector<PoolConfig>& pools,
                       Snapshot& snapshot) {
  for (const size_t index : UnassignedElsewhere(snapshot)) {
    for (const PoolConfig& pool : pools) {
      const std::string id = UnitId(pool, snapshot.devices[index].sysfs);
      const auto ids = held.find(pool.full_name());
      const auto members = snapshot.pools.find(pool.full_name());
      // A share of all devices does not tell which.
      if (pool.unit == PoolUnit::kShare || ids == held.end() ||
          members == snapshot.pools.end() ||
          !AnyIsOf(ids->second, pool.unit, id))
        continue;
      std::vector<size_t>& all = members->second;
      all.insert(std::upper_bound(all.begin(), all.end(), index), index);
    }
  }
}

}  // namespace purser::plugin
