// SPDX-License-Identifier: Apache-2.0
//
// Which RDMA devices the node has, how they are, and which pool has which: one
// immutable Snapshot, from which everything that the plugin tells is derived.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "plugin/config.h"
#include "rdma/discovery.h"

namespace purser::plugin {

enum class DeviceHealth {
  kHealthy,
  kPortDown,    // no port is ACTIVE
  kIncomplete,  // no uverbs device: a container could do nothing with it
};
const char* DeviceHealthName(DeviceHealth health);  // "healthy", "port_down", …

struct Device {
  rdma::SysfsDevice sysfs;
  DeviceHealth health = DeviceHealth::kHealthy;
  std::string reason;  // for people; empty when healthy
};

struct Snapshot {
  std::vector<Device> devices;  // by name
  bool rdma_cm = false;         // whether /dev/infiniband/rdma_cm exists
  // Complete devices of each pool, by resource name; indices into `devices`.
  std::map<std::string, std::vector<size_t>> pools;

  bool has_complete_device() const;
  // Whether the pool goes without a device although there are some.
  bool selects_none(const std::string& pool) const;
  std::string device_names() const;  // "mlx5_0,rxe0"
};

// Owned by App. Scan() belongs to the main thread; the rest may be called from
// any. A failed scan leaves the last good snapshot in place: failure never
// looks like "no devices".
class Inventory {
 public:
  Inventory(const rdma::Discovery& discovery, std::filesystem::path dev_root,
            std::vector<PoolConfig> pools, bool allow_overlap);

  // Reads sysfs anew and logs what changed. An error says what could not be
  // read.
  absl::Status Scan();
  // nullptr before the first good scan.
  std::shared_ptr<const Snapshot> snapshot() const;
  uint64_t scan_errors() const { return scan_errors_; }

 private:
  absl::StatusOr<Snapshot> Read() const;
  Device Judge(rdma::SysfsDevice sysfs) const;
  void AssignPools(Snapshot& snapshot);
  static void LogChanges(const Snapshot* before, const Snapshot& after);
  static void LogEmptyPools(const Snapshot* before, const Snapshot& after);

  const rdma::Discovery& discovery_;
  const std::filesystem::path dev_root_;
  const std::vector<PoolConfig> pools_;
  const bool allow_overlap_;
  std::set<std::string> overlaps_logged_;  // main thread
  bool last_scan_failed_ = false;          // main thread
  std::atomic<uint64_t> scan_errors_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
};

// What a device's port states mean for its health; shared with --check-config.
std::string PortSummary(const rdma::SysfsDevice& device);

}  // namespace purser::plugin
