// SPDX-License-Identifier: Apache-2.0
#include "cli/find_device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "queue_memory/registry.h"
#include "rdma/capabilities.h"
#include "rdma/discovery.h"
#include "rdma/handles.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

absl::StatusOr<rdma::Capabilities> Query(rdma::Verbs& verbs,
                                         const std::string& name) {
  PURSER_ASSIGN_OR_RETURN(const rdma::Context context,
                          rdma::OpenDevice(verbs, name));
  return rdma::QueryCapabilities(verbs, context);
}

std::string NamesOf(const std::vector<rdma::SysfsDevice>& devices) {
  std::vector<std::string> names;
  for (const rdma::SysfsDevice& device : devices) names.push_back(device.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

absl::Status NoSuch(const std::string& name,
                    const std::vector<rdma::SysfsDevice>& devices) {
  return absl::NotFoundError(fmt::format(
      "no RDMA device{}{} on this machine, which has {}; for a device "
      "elsewhere: --provider",
      name.empty() ? "" : " ", name, NamesOf(devices)));
}

absl::Status Ambiguous(const std::vector<rdma::SysfsDevice>& devices) {
  return absl::InvalidArgumentError(
      fmt::format("this machine has several RDMA devices, {}: name one by "
                  "--device",
                  NamesOf(devices)));
}

}  // namespace

absl::StatusOr<planner::Device> FindDevice(rdma::Verbs& verbs,
                                           const std::string& sysfs_root,
                                           const std::string& dev_root,
                                           const std::string& name,
                                           const std::string& kernel_release) {
  PURSER_ASSIGN_OR_RETURN(const std::vector<rdma::SysfsDevice> devices,
                          rdma::Discovery(sysfs_root, dev_root).Devices());
  const bool any = name.empty();
  if (any && devices.size() > 1) return Ambiguous(devices);
  const auto found =
      std::find_if(devices.begin(), devices.end(),
                   [&](const auto& each) { return any || each.name == name; });
  if (found == devices.end()) return NoSuch(name, devices);
  planner::Device device;
  if (auto known = planner::DeviceOfProfile(found->driver); known.ok())
    device = *std::move(known);
  device.name = found->name;
  device.provider = found->provider;
  PURSER_RETURN_IF_ERROR(planner::SetKernelVersion(kernel_release, &device));
  const auto capabilities = Query(verbs, device.name);
  if (!capabilities.ok()) {
    device.what = fmt::format(
        "limits are the defaults of {}, since it cannot be opened: {}",
        queue_memory::ProviderName(device.provider),
        std::string(capabilities.status().message()));
    return device;
  }
  const auto count = [](int value) {
    return static_cast<uint64_t>(std::max(value, 0));
  };
  planner::Tell(capabilities->limits,
                {.max_qp = count(capabilities->attr.max_qp),
                 .max_cq = count(capabilities->attr.max_cq),
                 .max_mr = count(capabilities->attr.max_mr),
                 .max_srq = count(capabilities->attr.max_srq)},
                &device);
  device.opened = true;
  return device;
}

}  // namespace purser::cli
