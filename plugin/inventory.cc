// SPDX-License-Identifier: Apache-2.0
#include "plugin/inventory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/logging.h"
#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// enum ibv_port_state.
const char* PortStateName(int port_state) {
  constexpr std::array<const char*, 6> kNames = {
      "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return port_state >= 0 && port_state < static_cast<int>(kNames.size())
             ? kNames[static_cast<size_t>(port_state)]
             : "UNKNOWN";
}

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

}  // namespace

const char* DeviceHealthName(DeviceHealth health) {
  switch (health) {
    case DeviceHealth::kHealthy:
      return "healthy";
    case DeviceHealth::kPortDown:
      return "port_down";
    case DeviceHealth::kIncomplete:
      return "incomplete";
  }
  return "unknown";
}

std::string PortSummary(const rdma::SysfsDevice& device) {
  std::string summary;
  for (const rdma::PortStatus& port : device.ports) {
    summary += fmt::format("{}port {} {} {}", summary.empty() ? "" : ", ",
                           port.port_num, PortStateName(port.port_state),
                           rdma::LinkLayerName(port.link_layer));
  }
  return summary.empty() ? "no port" : summary;
}

bool Snapshot::has_complete_device() const {
  return std::any_of(devices.begin(), devices.end(), [](const Device& device) {
    return device.health != DeviceHealth::kIncomplete;
  });
}

bool Snapshot::selects_none(const std::string& pool) const {
  const auto found = pools.find(pool);
  return has_complete_device() && found != pools.end() && found->second.empty();
}

std::string Snapshot::device_names() const {
  std::string names;
  for (const Device& device : devices)
    names += (names.empty() ? "" : ",") + device.sysfs.name;
  return names;
}

Inventory::Inventory(const rdma::Discovery& discovery,
                     std::filesystem::path dev_root,
                     std::vector<PoolConfig> pools, bool allow_overlap)
    : discovery_(discovery),
      dev_root_(std::move(dev_root)),
      pools_(std::move(pools)),
      allow_overlap_(allow_overlap) {}

absl::Status Inventory::Scan() {
  absl::StatusOr<Snapshot> read = Read();
  if (!read.ok()) {
    ++scan_errors_;
    if (!std::exchange(last_scan_failed_, true)) {
      base::LogError("cannot discover RDMA devices; the last list stays",
                     {{"error", read.status()}});
    }
    return read.status();
  }
  if (std::exchange(last_scan_failed_, false))
    base::LogInfo("discovery of RDMA devices works again");
  AssignPools(*read);
  const std::shared_ptr<const Snapshot> before = snapshot();
  auto after = std::make_shared<const Snapshot>(*std::move(read));
  LogChanges(before.get(), *after);
  std::lock_guard lock(mutex_);
  snapshot_ = std::move(after);
  return absl::OkStatus();
}

std::shared_ptr<const Snapshot> Inventory::snapshot() const {
  std::lock_guard lock(mutex_);
  return snapshot_;
}

absl::StatusOr<Snapshot> Inventory::Read() const {
  PURSER_ASSIGN_OR_RETURN(std::vector<rdma::SysfsDevice> devices,
                          discovery_.Devices());
  Snapshot snapshot;
  snapshot.rdma_cm = discovery_.HasRdmaCm();
  for (rdma::SysfsDevice& device : devices)
    snapshot.devices.push_back(Judge(std::move(device)));
  return snapshot;
}

Device Inventory::Judge(rdma::SysfsDevice sysfs) const {
  Device device;
  device.sysfs = std::move(sysfs);
  const std::filesystem::path nodes = dev_root_ / "infiniband";
  std::error_code ignored;
  // Where the directory cannot be seen at all, sysfs alone is believed. A node
  // that is named in a container's devices and does not exist would fail the
  // container.
  const bool nodes_visible = std::filesystem::is_directory(nodes, ignored);
  auto is_missing = [&](const std::string& node) {
    std::error_code unreadable;
    return nodes_visible && !std::filesystem::exists(nodes / node, unreadable);
  };
  std::erase_if(device.sysfs.umads, is_missing);
  std::erase_if(device.sysfs.issms, is_missing);
  if (device.sysfs.uverbs.empty()) {
    device.health = DeviceHealth::kIncomplete;
    device.reason =
        "it has no uverbs device: load the kernel module ib_uverbs, or wait "
        "for the driver to finish";
  } else if (is_missing(device.sysfs.uverbs)) {
    device.health = DeviceHealth::kIncomplete;
    device.reason = fmt::format("{} does not exist (yet)",
                                (nodes / device.sysfs.uverbs).string());
  } else if (std::none_of(
                 device.sysfs.ports.begin(), device.sysfs.ports.end(),
                 [](const rdma::PortStatus& port) { return port.active(); })) {
    device.health = DeviceHealth::kPortDown;
    device.reason = "no port is ACTIVE: " + PortSummary(device.sysfs);
  }
  return device;
}

void Inventory::AssignPools(Snapshot& snapshot) {
  std::vector<const PoolConfig*> owner(snapshot.devices.size(), nullptr);
  for (const PoolConfig& pool : pools_) {
    std::vector<size_t>& members = snapshot.pools[pool.full_name()];
    for (size_t i = 0; i < snapshot.devices.size(); ++i) {
      const Device& device = snapshot.devices[i];
      if (device.health == DeviceHealth::kIncomplete ||
          !Matches(pool.selectors, device.sysfs))
        continue;
      if (owner[i] == nullptr || allow_overlap_) {
        owner[i] = &pool;
        members.push_back(i);
      } else if (overlaps_logged_
                     .insert(device.sysfs.name + " " + pool.full_name())
                     .second) {
        base::LogWarn(
            "device is selected by two pools; the first has it (set "
            "resources.allowOverlap to give it to both)",
            {{"device", device.sysfs.name},
             {"has_it", owner[i]->full_name()},
             {"goes_without", pool.full_name()}});
      }
    }
  }
}

void Inventory::LogChanges(const Snapshot* before, const Snapshot& after) {
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

void Inventory::LogEmptyPools(const Snapshot* before, const Snapshot& after) {
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

}  // namespace purser::plugin
