// SPDX-License-Identifier: Apache-2.0
#include "plugin/inventory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/logging.h"
#include "base/proc.h"
#include "base/status_macros.h"
#include "plugin/inventory_log.h"
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

std::vector<const Device*> Snapshot::members(const std::string& pool) const {
  std::vector<const Device*> found;
  if (const auto entry = pools.find(pool); entry != pools.end())
    for (const size_t index : entry->second) found.push_back(&devices[index]);
  return found;
}

InventoryOptions::InventoryOptions(const Config& config)
    : pools(config.pools),
      overlap(config.overlap),
      wants_max_qp(config.queue_pairs.enabled && !config.queue_pairs.capacity) {
}

Inventory::Inventory(const rdma::Discovery& discovery,
                     std::filesystem::path dev_root,
                     std::filesystem::path proc_root, InventoryOptions options,
                     QueuePairLimits* limits)
    : discovery_(discovery),
      dev_root_(std::move(dev_root)),
      proc_root_(std::move(proc_root)),
      limits_(limits),
      options_(std::move(options)) {}

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
  Assign(*read);
  Publish(*std::move(read));
  return absl::OkStatus();
}

void Inventory::Configure(InventoryOptions options) {
  options_ = std::move(options);
  overlaps_logged_.clear();
  const std::shared_ptr<const Snapshot> last = snapshot();
  if (last == nullptr) return;
  Snapshot anew = *last;
  for (Device& device : anew.devices) AskMaxQp(device);
  Assign(anew);
  Publish(std::move(anew));
}

void Inventory::Publish(Snapshot anew) {
  const std::shared_ptr<const Snapshot> before = snapshot();
  auto after = std::make_shared<const Snapshot>(std::move(anew));
  LogChanges(before.get(), *after);
  std::lock_guard lock(mutex_);
  snapshot_ = std::move(after);
}

std::shared_ptr<const Snapshot> Inventory::snapshot() const {
  std::lock_guard lock(mutex_);
  return snapshot_;
}

absl::StatusOr<Snapshot> Inventory::Read() {
  PURSER_ASSIGN_OR_RETURN(std::vector<rdma::SysfsDevice> devices,
                          discovery_.Devices());
  network_.sees_function_netdevs = discovery_.SeesFunctionNetdevs();
  network_.default_route_netdevs =
      base::ProcReader(proc_root_).DefaultRouteNetdevs();
  Snapshot snapshot;
  snapshot.rdma_cm = discovery_.HasRdmaCm();
  snapshot.numa_nodes = discovery_.NumaNodes();
  for (rdma::SysfsDevice& device : devices) {
    snapshot.devices.push_back(Judge(std::move(device)));
    AskMaxQp(snapshot.devices.back());
  }
  return snapshot;
}

void Inventory::AskMaxQp(Device& device) {
  device.max_qp.reset();
  device.max_qp_unknown.clear();
  if (!options_.wants_max_qp || limits_ == nullptr ||
      device.health == DeviceHealth::kIncomplete)
    return;
  const absl::StatusOr<uint64_t> max_qp = limits_->MaxQp(device.sysfs);
  if (max_qp.ok()) {
    device.max_qp = *max_qp;
  } else {
    device.max_qp_unknown = std::string(max_qp.status().message());
  }
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

void Inventory::Assign(Snapshot& snapshot) {
  std::vector<const rdma::SysfsDevice*> devices;
  for (const Device& device : snapshot.devices)
    devices.push_back(
        device.health == DeviceHealth::kIncomplete ? nullptr : &device.sysfs);
  PoolAssignment assignment =
      AssignPools(options_.pools, options_.overlap, devices, network_);
  snapshot.pools = std::move(assignment.pools);
  snapshot.overlaps = std::move(assignment.overlaps);
  if (options_.overlap == OverlapPolicy::kAllow) return;
  for (const Overlap& overlap : snapshot.overlaps) {
    if (!overlaps_logged_.insert(overlap.device + " " + overlap.later_pool)
             .second)
      continue;
    const bool refused = options_.overlap == OverlapPolicy::kRefuse;
    base::LogWarn(
        refused ? "device is selected by two pools; neither has it"
                : "device is selected by two pools; the first has it (set "
                  "resources.overlap to allow to give it to both)",
        {{"device", overlap.device},
         {"first", overlap.first_pool},
         {"later", overlap.later_pool}});
  }
}

}  // namespace purser::plugin
