// SPDX-License-Identifier: Apache-2.0
#include "plugin/inventory_log.h"

#include "base/logging.h"

namespace purser::plugin {
namespace {

const Device* Find(const Snapshot* snapshot, const std::string& name) {
  if (snapshot == nullptr) return nullptr;
  for (const Device& device : snapshot->devices) {
    if (device.sysfs.name == name) return &device;
  }
  return nullptr;
}

void LogDevice(const Device& device, std::string_view change) {
  const rdma::SysfsDevice& sysfs = device.sysfs;
  if (device.health == DeviceHealth::kHealthy) {
    base::LogInfo(change, {{"device", sysfs.name},
                           {"driver", sysfs.driver},
                           {"ports", PortSummary(sysfs)},
                           {"uverbs", sysfs.uverbs}});
  } else {
    base::LogWarn(change, {{"device", sysfs.name},
                           {"driver", sysfs.driver},
                           {"health", DeviceHealthName(device.health)},
                           {"reason", device.reason}});
  }
}

void LogEmptyPools(const Snapshot* before, const Snapshot& after) {
  for (const auto& [pool, members] : after.pools) {
    if (!after.selects_none(pool) ||
        (before != nullptr && before->selects_none(pool)))
      continue;
    base::LogWarn(
        "no RDMA device of this node is selected by the pool: advertising 0 of "
        "it",
        {{"pool", pool}, {"devices", after.device_names()}});
  }
}

}  // namespace

void LogChanges(const Snapshot* before, const Snapshot& after) {
  for (const Device& device : after.devices) {
    const Device* old = Find(before, device.sysfs.name);
    if (old == nullptr) {
      LogDevice(device, "RDMA device found");
    } else if (old->health != device.health || old->reason != device.reason) {
      LogDevice(device, "RDMA device changed");
    }
  }
  if (before != nullptr) {
    for (const Device& device : before->devices) {
      if (Find(&after, device.sysfs.name) == nullptr)
        base::LogWarn("RDMA device is gone", {{"device", device.sysfs.name}});
    }
  }
  if (!after.devices.empty() && !after.rdma_cm &&
      (before == nullptr || before->devices.empty() || before->rdma_cm)) {
    base::LogWarn(
        "no rdma_cm device: containers get none, and librdmacm will not work "
        "in them; load the kernel module rdma_ucm");
  }
  const bool had_devices = before == nullptr || !before->devices.empty();
  if (after.devices.empty() && had_devices) {
    base::LogWarn(
        "no RDMA device on this node: advertising 0 and looking again");
  }
  LogEmptyPools(before, after);
}

}  // namespace purser::plugin
