// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_choice.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "base/logging.h"
#include "base/status_macros.h"
#include "queue_memory/queue_memory.h"
#include "rdma/discovery.h"
#include "rdma/sysfs.h"
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

// What to put into the pod's spec for a device; the pool's name is that of the
// chart's default.
constexpr char kHowToRequest[] =
    "request rdma/<pool> in the resources of the sidecar's container, by "
    "default resources: {limits: {rdma/hca: 1}}";

// The class of RDMA devices belongs to network namespaces, that of their uverbs
// devices does not.
absl::Status NoDevice(const Config& config) {
  const std::string uverbs_class =
      config.sysfs_root + "/class/infiniband_verbs";
  const absl::StatusOr<std::vector<std::string>> uverbs =
      rdma::ListDirectory(uverbs_class);
  if (uverbs.ok() &&
      std::any_of(uverbs->begin(), uverbs->end(), [](const std::string& name) {
        return name.starts_with("uverbs");
      }))
    return absl::FailedPreconditionError(fmt::format(
        "no RDMA device in this pod's network namespace, though {} shows that "
        "the node has one: its RDMA devices belong to one network namespace "
        "each (rdma system show: exclusive); run the pod on the host network "
        "(hostNetwork: true), or have the node set rdma system set netns "
        "shared before any pod runs",
        uverbs_class));
  return absl::FailedPreconditionError(fmt::format(
      "no RDMA device: {}/class/infiniband has no entry, so no RDMA driver is "
      "loaded on this node; load it (e.g. modprobe mlx5_ib, or for soft-RoCE: "
      "rdma link add rxe0 type rxe netdev NAME), or {}, so that the pod is "
      "scheduled to a node that has a device",
      config.sysfs_root, kHowToRequest));
}

absl::Status NoSuchDevice(const std::string& name,
                          const std::vector<SysfsDevice>& on_node) {
  std::vector<std::string> names;
  for (const SysfsDevice& device : on_node) names.push_back(device.name);
  return absl::FailedPreconditionError(fmt::format(
      "no RDMA device {} on this node, which has {}: correct --device or "
      "devices: in the sidecar's configuration, or leave it out to take all "
      "that the container is given",
      name, absl::StrJoin(names, ", ")));
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
      "no RDMA device was given to this container: the node has {}, and {} "
      "here; {}, so that the device plugin hands it over",
      absl::StrJoin(missing, ", "),
      missing.size() == 1 ? "this device node is not"
                          : "none of these device nodes is",
      kHowToRequest));
}

absl::Status NoLibrary(const SysfsDevice& device) {
  return absl::FailedPreconditionError(fmt::format(
      "libibverbs shows no RDMA device, though {} and its device node are "
      "here: the library of its provider ({}, kernel driver {}) is missing "
      "from the image; add it (Debian: ibverbs-providers)",
      device.name, queue_memory::ProviderName(device.provider),
      device.driver.empty() ? "unknown" : device.driver));
}

absl::Status CheckNamed(const Config& config,
                        const std::vector<SysfsDevice>& on_node) {
  for (const std::string& name : config.devices) {
    const auto device =
        std::find_if(on_node.begin(), on_node.end(),
                     [&](const SysfsDevice& one) { return one.name == name; });
    if (device == on_node.end()) return NoSuchDevice(name, on_node);
    if (!HasNode(config, *device)) return NoNode(config, {*device});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ChooseDevices(const Config& config,
                                                       rdma::Verbs& verbs) {
  PURSER_ASSIGN_OR_RETURN(
      const std::vector<SysfsDevice> on_node,
      rdma::Discovery(config.sysfs_root, config.dev_root).Devices());
  if (on_node.empty()) return NoDevice(config);
  if (!config.devices.empty()) {
    PURSER_RETURN_IF_ERROR(CheckNamed(config, on_node));
    return config.devices;
  }
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
