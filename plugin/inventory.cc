// SPDX-License-Identifier: Apache-2.0
#include "plugin/inventory.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "base/proc.h"
#include "base/status_macros.h"
#include "plugin/held_devices.h"
#include "plugin/inventory_log.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

const Device* Find(const Snapshot* snapshot, const std::string& name) {
  if (snapshot == nullptr) return nullptr;
  for (const Device& device : snapshot->devices)
    if (device.sysfs.name == name) return &device;
  return nullptr;
}

}  // namespace

bool Snapshot::has_complete_device() const {
  return std::any_of(devices.begin(), devices.end(), [](const Device& device) {
    return device.health != DeviceHealth::kIncomplete;
  });
}

bool Snapshot::selects_none(const std::string& pool) const {
  const auto found = pools.find(pool);
  return has_complete_device() && found != pools.end() &&
         found->second.empty() && contested_devices(pool).empty();
}

std::string Snapshot::contested_devices(const std::string& pool) const {
  std::string text;
  for (const Overlap& overlap : overlaps) {
    if (overlap.first_pool != pool && overlap.later_pool != pool) continue;
    text += fmt::format(
        "{}{} ({})", text.empty() ? "" : ", ", overlap.device,
        overlap.later_pool == pool ? overlap.first_pool : overlap.later_pool);
  }
  return text;
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
      wants_max_qp(config.queue_pairs.enabled && !config.queue_pairs.capacity),
      health_debounce(config.health_debounce) {}

Inventory::Inventory(const rdma::Discovery& discovery,
                     std::filesystem::path dev_root,
                     std::filesystem::path proc_root, InventoryOptions options,
                     QueuePairLimits* limits, AskHeldUnits held)
    : discovery_(discovery),
      dev_root_(std::move(dev_root)),
      proc_root_(std::move(proc_root)),
      limits_(limits),
      ask_held_(std::move(held)),
      options_(std::move(options)),
      debounce_(options_.health_debounce) {}

absl::Status Inventory::Scan(const ScanCircumstances& circumstances) {
  absl::StatusOr<Snapshot> read = Read(circumstances);
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

absl::StatusOr<std::shared_ptr<const Snapshot>> Inventory::Preview(
    const InventoryOptions& options) const {
  const std::shared_ptr<const Snapshot> last = snapshot();
  if (last == nullptr) return nullptr;
  PoolAssignment assignment = AssignmentOf(options, *last);
  PURSER_RETURN_IF_ERROR(CheckOverlaps(options.overlap, assignment.overlaps));
  auto preview = std::make_shared<Snapshot>(*last);
  preview->pools = std::move(assignment.pools);
  preview->overlaps = std::move(assignment.overlaps);
  return preview;
}

void Inventory::Configure(InventoryOptions options) {
  options_ = std::move(options);
  debounce_.SetTime(options_.health_debounce);
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
  for (const Device& device : after->devices) {
    if (const Device* old = Find(before.get(), device.sysfs.name))
      port_changes_.Observe(old->sysfs, device.sysfs);
  }
  std::lock_guard lock(mutex_);
  snapshot_ = std::move(after);
}

std::shared_ptr<const Snapshot> Inventory::snapshot() const {
  std::lock_guard lock(mutex_);
  return snapshot_;
}

absl::StatusOr<std::vector<rdma::SysfsDevice>> Inventory::ReadVisible(
    bool quick) const {
  if (!quick) return discovery_.Devices();
  rdma::Discovery::Known known;
  const std::shared_ptr<const Snapshot> last = snapshot();
  if (last != nullptr)
    for (const Device& device : last->devices)
      known[device.sysfs.name] = &device.sysfs;
  return discovery_.DevicesQuickly(known);
}

absl::StatusOr<std::vector<rdma::SysfsDevice>> Inventory::ReadDevices(
    const ScanCircumstances& circumstances) const {
  if (!circumstances.exclusive_namespaces)
    return ReadVisible(circumstances.quick);
  // In this order: a device that moves away meanwhile is seen twice, not never.
  PURSER_ASSIGN_OR_RETURN(std::vector<rdma::SysfsDevice> devices,
                          ReadVisible(circumstances.quick));
  PURSER_ASSIGN_OR_RETURN(std::vector<rdma::SysfsDevice> elsewhere,
                          discovery_.DevicesElsewhere());
  const std::shared_ptr<const Snapshot> last = snapshot();
  for (rdma::SysfsDevice& device : elsewhere) {
    // What the pools select by, as it was when it was seen last.
    const Device* before = Find(last.get(), device.name);
    if (before != nullptr && before->sysfs.pci_address == device.pci_address) {
      rdma::SysfsDevice known = before->sysfs;
      known.uverbs = device.uverbs;
      known.umads = device.umads;
      known.issms = device.issms;
      known.in_other_namespace = true;
      device = std::move(known);
    }
    std::erase_if(devices, [&](const rdma::SysfsDevice& seen) {
      return seen.name == device.name;
    });
    devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end(),
            [](const rdma::SysfsDevice& a, const rdma::SysfsDevice& b) {
              return a.name < b.name;
            });
  return devices;
}

absl::StatusOr<Snapshot> Inventory::Read(
    const ScanCircumstances& circumstances) {
  PURSER_ASSIGN_OR_RETURN(std::vector<rdma::SysfsDevice> devices,
                          ReadDevices(circumstances));
  network_.sees_function_netdevs = discovery_.SeesFunctionNetdevs();
  network_.default_route_netdevs =
      base::ProcReader(proc_root_).DefaultRouteNetdevs();
  Snapshot snapshot;
  snapshot.rdma_cm = discovery_.HasRdmaCm();
  snapshot.numa_nodes = discovery_.NumaNodes();
  std::set<std::string> debounced;
  for (rdma::SysfsDevice& device : devices) {
    Device judged = Judge(std::move(device), circumstances);
    if (judged.health != DeviceHealth::kIncomplete &&
        judged.health != DeviceHealth::kOtherNamespace)
      debounced.insert(judged.sysfs.name);
    AskMaxQp(judged);
    snapshot.devices.push_back(std::move(judged));
  }
  debounce_.Keep(debounced);
  return snapshot;
}

void Inventory::AskMaxQp(Device& device) {
  device.max_qp.reset();
  device.max_qp_unknown.clear();
  if (!options_.wants_max_qp || limits_ == nullptr ||
      device.health == DeviceHealth::kIncomplete)
    return;
  if (device.health == DeviceHealth::kOtherNamespace) {
    // It cannot be opened from here: what it said before holds.
    const std::shared_ptr<const Snapshot> last = snapshot();
    const Device* before = Find(last.get(), device.sysfs.name);
    if (before != nullptr) device.max_qp = before->max_qp;
    if (!device.max_qp) device.max_qp_unknown = device.reason;
    return;
  }
  const absl::StatusOr<uint64_t> max_qp = limits_->MaxQp(device.sysfs);
  if (max_qp.ok()) {
    device.max_qp = *max_qp;
  } else {
    device.max_qp_unknown = std::string(max_qp.status().message());
  }
}

Device Inventory::Judge(rdma::SysfsDevice sysfs,
                        const ScanCircumstances& circumstances) {
  Device device;
  device.sysfs = std::move(sysfs);
  const std::string& name = device.sysfs.name;
  Judgement judgement = JudgeDevice(dev_root_, device.sysfs);
  device.health = judgement.health;
  device.reason = std::move(judgement.reason);
  // What comes, goes or is elsewhere is told as it is.
  if (device.health != DeviceHealth::kHealthy &&
      device.health != DeviceHealth::kPortDown)
    return device;
  if (circumstances.fatal.contains(name)) {
    device.health = DeviceHealth::kFatal;
    device.reason = "it reported a fatal error";
  }
  const bool seen = device.healthy();
  const bool told = debounce_.Tell(name, seen, circumstances.now);
  if (told == seen) return device;
  const std::shared_ptr<const Snapshot> last = snapshot();
  const Device* before = Find(last.get(), name);
  device.health = told                ? DeviceHealth::kHealthy
                  : before != nullptr ? before->health
                                      : DeviceHealth::kPortDown;
  device.reason = told ? ""
                       : fmt::format(
                             "it is healthy again, which is told when "
                             "it has lasted {} ms",
                             options_.health_debounce.count());
  return device;
}

PoolAssignment Inventory::AssignmentOf(const InventoryOptions& options,
                                       const Snapshot& snapshot) const {
  std::vector<const rdma::SysfsDevice*> devices;
  for (const Device& device : snapshot.devices)
    devices.push_back(
        device.health == DeviceHealth::kIncomplete ? nullptr : &device.sysfs);
  return AssignPools(options.pools, options.overlap, devices, network_);
}

void Inventory::Assign(Snapshot& snapshot) {
  PoolAssignment assignment = AssignmentOf(options_, snapshot);
  snapshot.pools = std::move(assignment.pools);
  snapshot.overlaps = std::move(assignment.overlaps);
  AssignHeld(snapshot);
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

void Inventory::AssignHeld(Snapshot& snapshot) {
  if (!ask_held_ || UnassignedElsewhere(snapshot).empty()) return;
  // Where the kubelet does not answer, what it said before holds.
  if (absl::StatusOr<HeldUnits> held = ask_held_(); held.ok())
    held_ = *std::move(held);
  AssignHeldDevices(held_, options_.pools, snapshot);
}

}  // namespace purser::plugin
