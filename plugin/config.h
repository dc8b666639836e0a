// SPDX-License-Identifier: Apache-2.0
//
// The configuration of purser-device-plugin, with its defaults, and its YAML
// form (docs/device-plugin.md has the table of keys).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/logging.h"
#include "plugin/allocate_options.h"
#include "plugin/names.h"
#include "plugin/node_view_config.h"
#include "plugin/registration_mode.h"
#include "plugin/selectors.h"

namespace purser::plugin {

struct Mount {
  std::string host_path, container_path;
  bool read_only = false;
};

struct PoolConfig {
  std::string resource_name = "hca";
  std::string resource_prefix = std::string(kDefaultResourcePrefix);
  uint32_t rdma_hca_max = 1000;  // shares, each of all devices of the pool
  Selectors selectors;           // empty: every device of the node
  std::vector<Mount> mounts;
  AllocateOptions allocate;  // no key sets it yet: the defaults
  std::string full_name() const {
    return resource_prefix + "/" + resource_name;
  }
};

// rdma/wqe-mib. At most one of capacity and fraction is set; neither: a tenth
// of the node's memory, or less where the kubelet could not take that many
// units.
struct QueueMemoryConfig {
  static constexpr double kDefaultFraction = 0.1;
  bool enabled = true;
  std::optional<uint64_t> capacity_bytes;
  std::optional<double> node_memory_fraction;
};

struct Config {
  std::vector<PoolConfig> pools = {PoolConfig{}};
  // Whether a device may be in several pools. If not, the first pool in the
  // order of the configuration has it.
  bool allow_overlap = false;
  QueueMemoryConfig queue_memory;
  std::string kubelet_root_dir = "/var/lib/kubelet";
  RegistrationMode registration = RegistrationMode::kAuto;
  std::string metrics_address = ":9836";
  std::chrono::milliseconds rescan_interval = std::chrono::seconds(10);
  base::LogLevel log_level = base::LogLevel::kInfo;
  NodeViewConfig node_view;  // not in the file
  // Not in the file: whether to listen to the kernel's events, which take no
  // privilege.
  bool events = true;

  // Not in the file. Plugins of one installation replace each other.
  std::string installation = "purser";
  // Not in the file: where the node's own file systems are.
  std::string sysfs_root = "/sys", dev_root = "/dev", proc_root = "/proc";

  std::string device_plugins_dir() const {
    return kubelet_root_dir + "/device-plugins";
  }
  std::string plugins_registry_dir() const {
    return kubelet_root_dir + "/plugins_registry";
  }
};

// `name` is what messages call the document. InvalidArgument lists all faults,
// one a line, with line and column.
absl::StatusOr<Config> ParseConfig(const std::string& name,
                                   std::string_view text);
absl::StatusOr<Config> LoadConfig(const std::string& path);

}  // namespace purser::plugin
