// SPDX-License-Identifier: Apache-2.0
//
// The configuration of purser-device-plugin with its defaults: one model, which
// three forms of file are read into (docs/configuration.md): Purser's own YAML,
// and the JSON of the shared RDMA and the SR-IOV network device plugins.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/logging.h"
#include "plugin/allocate_options.h"
#include "plugin/config/names.h"
#include "plugin/config/registration_mode.h"
#include "plugin/config/selectors.h"
#include "plugin/node_view_config.h"

namespace purser::plugin {

enum class ConfigForm { kNative, kSharedRdma, kSriov };
const char* ConfigFormName(ConfigForm form);  // for people

struct Mount {
  std::string host_path, container_path;
  bool read_only = false;
};

// What one unit of a pool is.
enum class PoolUnit {
  kShare,        // a share of all its devices
  kDeviceShare,  // a share of one of them
  kDevice,       // one device of its own
};

struct PoolConfig {
  static constexpr uint32_t kDefaultShares = 1000;
  std::string resource_name = "hca";
  std::string resource_prefix = std::string(kDefaultResourcePrefix);
  PoolUnit unit = PoolUnit::kShare;
  // Shares, of all or of each device. nullopt: as many as the GID tables of its
  // devices have room for.
  std::optional<uint32_t> rdma_hca_max = kDefaultShares;
  bool rdma_hca_max_given = false;  // that number is the configuration's
  // A device that one of `selectors` takes, and none of `exclude`; no selectors
  // at all take every device.
  std::vector<Selectors> selectors, exclude;
  Reach reach = Reach::kEveryDevice;
  // False: it keeps its devices from the pools after it, and that is all.
  bool advertised = true;
  std::optional<bool> health_check;  // nullopt: as the command line says
  std::vector<Mount> mounts;
  AllocateOptions allocate;
  // What containers are told of a device beside its id, by the device's id, or
  // "*" for all; in files of the SR-IOV plugin.
  std::map<std::string, std::map<std::string, std::string>> additional_info;
  bool of_sriov_plugin() const {
    return reach == Reach::kSriovNetDevice ||
           reach == Reach::kSriovAuxNetDevice;
  }
  // Whether a device that is not healthy makes units unhealthy.
  bool checks_health() const { return health_check.value_or(true); }
  std::string full_name() const {
    return resource_prefix + "/" + resource_name;
  }
};

// What happens to a device that several pools select.
enum class OverlapPolicy {
  kFirstWins,  // the first pool in the order of the configuration has it
  kAllow,      // all have it
  kRefuse,     // the configuration is refused; a device that comes later is
               // given to none
};

// rdma/wqe-mib. At most one of capacity and fraction is set; neither: a tenth
// of the node's memory, or less where the kubelet could not take that many
// units.
struct QueueMemoryConfig {
  static constexpr double kDefaultFraction = 0.1;
  bool enabled = true;
  std::optional<uint64_t> capacity_bytes;
  std::optional<double> node_memory_fraction;
  uint32_t unit_mib = 1;  // 16: rdma/wqe-16mib
  std::string full_name() const { return QueueMemoryResourceName(unit_mib); }
};

// rdma/qp.
struct QueuePairConfig {
  static constexpr double kDefaultReserve = 0.02;
  bool enabled = false;
  // Of the node. nullopt: the sum over its devices, each by its own max_qp
  // where it may be opened, else by `per_device`.
  std::optional<uint64_t> capacity;
  std::optional<uint64_t> per_device;
  // Not advertised: a number, or else a share of the capacity.
  std::optional<uint64_t> reserve;
  double reserve_fraction = kDefaultReserve;
  uint32_t unit = 1;  // 64: rdma/qp-64
  std::string full_name() const { return QueuePairResourceName(unit); }
};

struct Config {
  ConfigForm form = ConfigForm::kNative;
  std::vector<PoolConfig> pools = {PoolConfig{}};
  OverlapPolicy overlap = OverlapPolicy::kFirstWins;
  QueueMemoryConfig queue_memory;
  QueuePairConfig queue_pairs;
  std::string kubelet_root_dir = "/var/lib/kubelet";
  RegistrationMode registration = RegistrationMode::kAuto;
  std::string metrics_address = ":9836";
  // 0: never but when something is seen to have changed.
  std::chrono::milliseconds rescan_interval = std::chrono::seconds(10);
  // A change of a device's health that follows another within this time is told
  // the kubelet when it has lasted as long.
  std::chrono::milliseconds health_debounce = std::chrono::seconds(1);
  base::LogLevel log_level = base::LogLevel::kInfo;
  // What was read more strictly, or otherwise, than the file may mean; one line
  // each, with line and column.
  std::vector<std::string> warnings;

  NodeViewConfig node_view;  // not in the file
  // Not in the file: whether to listen to the kernel's events, which take no
  // privilege, and to those of opened devices, which do.
  bool events = true;
  bool open_devices = false;
  // Whether containers get device nodes by the Container Device Interface, and
  // where its specifications are.
  bool cdi = false;
  std::string cdi_dir = "/var/run/cdi";

  // Not in the file. Plugins of one installation replace each other.
  std::string installation = "purser";
  // Not in the file: where the node's own file systems are.
  std::string sysfs_root = "/sys", dev_root = "/dev", proc_root = "/proc";

  std::string device_plugins_dir() const {
    return kubelet_root_dir + "/device-plugins";
  }
  std::string pod_resources_socket() const {
    return node_view.pod_resources_socket.empty()
               ? kubelet_root_dir + "/pod-resources/kubelet.sock"
               : node_view.pod_resources_socket;
  }
  std::string plugins_registry_dir() const {
    return kubelet_root_dir + "/plugins_registry";
  }
};

struct ParseOptions {
  // The prefix of SR-IOV pools that have none, as that plugin's
  // -resource-prefix.
  std::string sriov_resource_prefix = "intel.com";
};

// `name` is what messages call the document; its form is told by its keys.
// InvalidArgument lists all faults, one a line, with line and column.
absl::StatusOr<Config> ParseConfig(const std::string& name,
                                   std::string_view text,
                                   const ParseOptions& options = {});
absl::StatusOr<Config> LoadConfig(const std::string& path,
                                  const ParseOptions& options = {});

}  // namespace purser::plugin
