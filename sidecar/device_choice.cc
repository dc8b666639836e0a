// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_choice.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "base/logging.h"
#include "base/status_macros.h"
#include "queue_memory/queue_memory.h"
#include "rdma/discovery.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using rdma::SysfsDevice;

std::string NodePath(const Config& config, const SysfsDevice& device) {
  return fmt::format("{}/infiniband/{}", config.dev_root, device.uverbs);
}

bool HasNode(const Config& config, const SysfsDevice& device) {
  std::error_code ignored;
  return !device.uverbs.empty() &&
         std::filesystem::exists(NodePath(config, device), ignored);
}

absl::Status NoDriver(const Config& config) {
  return absl::FailedPreconditionError(fmt::format(
      "no RDMA device: {}/class/infiniband has no entry, so no RDMA driver is "
      "loaded on this node; load it (e.g. modprobe mlx5_ib, or for soft-RoCE: "
      "rdma link add rxe0 type rxe netdev NAME), or request rdma/<pool> so "
      "that the pod is scheduled to a node that has a device",
      config.sysfs_root));
}

absl::Status NoNode(const Config& config,
                    const std::vector<SysfsDevice>& devices) {
  std::vector<std::string> missing;
  for (const SysfsDevice& device : devices)
    missing.push_back(
        device.uverbs.empty()
            ? fmt::format("{} (it has no uverbs device: load "
                          "ib_uverbs on the node)",
                          device.name)
            : fmt::format("{} ({})", device.name, NodePath(config, device)));
  return absl::FailedPreconditionError(fmt::format(
      "no RDMA device was given to this container: the node has {}, and none "
      "of these device nodes is here; request rdma/<pool> in the resources of "
      "the sidecar's container, so that the device plugin hands one over",
      absl::StrJoin(missing, ", ")));
}

absl::Status NoLibrary(const SysfsDevice& device) {
  return absl::FailedPreconditionError(fmt::format(
      "libibverbs shows no RDMA device, though {} and its device node are "
      "here: the library of its provider ({}, kernel driver {}) is missing "
      "from the image; add it (Debian: ibverbs-providers)",
      device.name, queue_memory::ProviderName(device.provider),
      device.driver.empty() ? "unknown" : device.driver));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ChooseDevices(const Config& config,
                                                       rdma::Verbs& verbs) {
  if (!config.devices.empty()) return config.devices;
  PURSER_ASSIGN_OR_RETURN(
      const std::vector<SysfsDevice> on_node,
      rdma::Discovery(config.sysfs_root, config.dev_root).Devices());
  if (on_node.empty()) return NoDriver(config);
  std::vector<SysfsDevice> given;
  for (const SysfsDevice& device : on_node)
    if (HasNode(config, device)) given.push_back(device);
  if (given.empty()) return NoNode(config, on_node);

  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> visible,
                          verbs.DeviceNames());
  std::vector<std::string> chosen;
  for (const SysfsDevice& device : given) {
    if (std::find(visible.begin(), visible.end(), device.name) != visible.end())
      chosen.push_back(device.name);
  }
  if (chosen.empty()) return NoLibrary(given.front());
  return chosen;
}

}  // namespace purser::sidecar
