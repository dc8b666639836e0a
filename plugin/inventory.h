// SPDX-License-Identifier: Apache-2.0
//
// Which RDMA devices the node has, how they are, and which pool has which: one
// immutable Snapshot, from which everything that the plugin tells is derived.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "plugin/config/config.h"
#include "plugin/device_health.h"
#include "plugin/health_debounce.h"
#include "plugin/held_units.h"
#include "plugin/pool_assignment.h"
#include "plugin/port_changes.h"
#include "plugin/queue_pair_limits.h"
#include "rdma/discovery.h"

namespace purser::plugin {

struct Device {
  rdma::SysfsDevice sysfs;
  DeviceHealth health = DeviceHealth::kHealthy;
  std::string reason;  // for people; empty when healthy
  // Where it was asked for: how many queue pairs the device can have, or why
  // that is not known.
  std::optional<uint64_t> max_qp;
  std::string max_qp_unknown;

  bool healthy() const {
    return health == DeviceHealth::kHealthy ||
           health == DeviceHealth::kOtherNamespace;
  }
};

struct Snapshot {
  std::vector<Device> devices;  // by name
  bool rdma_cm = false;         // whether /dev/infiniband/rdma_cm exists
  int numa_nodes = 0;           // of the machine; 0: not told
  // Complete devices of each pool, by resource name; indices into `devices`.
  std::map<std::string, std::vector<size_t>> pools;
  std::vector<Overlap> overlaps;

  std::vector<const Device*> members(const std::string& pool) const;

  bool has_complete_device() const;
  // Whether the pool goes without a device although there are some, and selects
  // none of them.
  bool selects_none(const std::string& pool) const;
  // Devices that the pool selects and that others select too, with these: "rxe0
  // (rdma/a)".
  std::string contested_devices(const std::string& pool) const;
  std::string device_names() const;  // "mlx5_0,rxe0"
};

// What the inventory is asked for; by the configuration.
struct InventoryOptions {
  explicit InventoryOptions(const Config& config);
  std::vector<PoolConfig> pools;
  OverlapPolicy overlap = OverlapPolicy::kFirstWins;
  bool wants_max_qp = false;
  std::chrono::milliseconds health_debounce{0};
};

// What a scan has to know beside sysfs.
struct ScanCircumstances {
  HealthDebounce::TimePoint now = std::chrono::steady_clock::now();
  // A device that is not seen may be in a pod's network namespace.
  bool exclusive_namespaces = false;
  std::set<std::string> fatal;  // devices that reported a fatal error
  // Of the GIDs only those that are known, and a few more: a glance.
  bool quick = false;
};

// Owned by App. Scan() and Configure() belong to the main thread; the rest may
// be called from any. A failed scan leaves the last good snapshot in place:
// failure never looks like "no devices".
class Inventory {
 public:
  // `limits` is asked for max_qp; it may be null where that is not wanted.
  // `held` is asked which pool a device is of that a pod has taken with it.
  Inventory(const rdma::Discovery& discovery, std::filesystem::path dev_root,
            std::filesystem::path proc_root, InventoryOptions options,
            QueuePairLimits* limits = nullptr, AskHeldUnits held = nullptr);

  // Reads sysfs anew and logs what changed. An error says what could not be
  // read.
  absl::Status Scan(const ScanCircumstances& circumstances = {});
  // When a scan has to tell what this one holds back. Main thread.
  std::optional<HealthDebounce::TimePoint> held_back_until() const {
    return debounce_.next();
  }
  // The last good scan as it would be with these; null before the first.
  // InvalidArgument: its devices do not allow that.
  absl::StatusOr<std::shared_ptr<const Snapshot>> Preview(
      const InventoryOptions& options) const;
  // Gives the devices of the last good scan to other pools.
  void Configure(InventoryOptions options);
  // nullptr before the first good scan.
  std::shared_ptr<const Snapshot> snapshot() const;
  uint64_t scan_errors() const { return scan_errors_; }
  const PortChanges& port_changes() const { return port_changes_; }

 private:
  absl::StatusOr<Snapshot> Read(const ScanCircumstances& circumstances);
  absl::StatusOr<std::vector<rdma::SysfsDevice>> ReadVisible(bool quick) const;
  absl::StatusOr<std::vector<rdma::SysfsDevice>> ReadDevices(
      const ScanCircumstances& circumstances) const;
  Device Judge(rdma::SysfsDevice sysfs, const ScanCircumstances& circumstances);
  void AskMaxQp(Device& device);
  PoolAssignment AssignmentOf(const InventoryOptions& options,
                              const Snapshot& snapshot) const;
  void Assign(Snapshot& snapshot);
  void AssignHeld(Snapshot& snapshot);
  void Publish(Snapshot snapshot);

  const rdma::Discovery& discovery_;
  const std::filesystem::path dev_root_, proc_root_;
  QueuePairLimits* const limits_;
  const AskHeldUnits ask_held_;
  // The main thread's.
  InventoryOptions options_;
  NodeNetwork network_;
  HeldUnits held_;  // the last answer
  std::set<std::string> overlaps_logged_;
  HealthDebounce debounce_;
  bool last_scan_failed_ = false;

  PortChanges port_changes_;

  std::atomic<uint64_t> scan_errors_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
