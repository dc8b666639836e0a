// SPDX-License-Identifier: Apache-2.0
#include "cli/find_device.h"

#include <algorithm>
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

absl::Status NoSuch(const std::string& name,
                    const std::vector<rdma::SysfsDevice>& devices) {
  std::vector<std::string> names;
  for (const rdma::SysfsDevice& device : devices) names.push_back(device.name);
  return absl::NotFoundError(fmt::format(
      "no RDMA device {} on this machine, which has {}; for a device "
      "elsewhere: --provider",
      name,
      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

absl::StatusOr<planner::Device> FindDevice(rdma::Verbs& verbs,
                                           const std::string& sysfs_root,
                                           const std::string& dev_root,
                                           const std::string& name) {
  PURSER_ASSIGN_OR_RETURN(const std::vector<rdma::SysfsDevice> devices,
                          rdma::Discovery(sysfs_root, dev_root).Devices());
  const auto found = std::find_if(
      devices.begin(), devices.end(),
      [&](const rdma::SysfsDevice& each) { return each.name == name; });
  if (found == devices.end()) return NoSuch(name, devices);
  planner::Device device{.name = name, .provider = found->provider};
  if (const auto* profile = queue_memory::FindProfile(found->driver.c_str())) {
    device.what = profile->what;
    device.limits = profile->limits;
  }
  const auto capabilities = Query(verbs, name);
  if (!capabilities.ok()) {
    device.what = fmt::format(
        "limits are the defaults of {}, since it cannot be opened: {}",
        queue_memory::ProviderName(device.provider),
        std::string(capabilities.status().message()));
    return device;
  }
  device.limits = queue_memory::Overlay(device.limits, capabilities->limits);
  device.max_qp = static_cast<uint64_t>(std::max(capabilities->attr.max_qp, 0));
  return device;
}

}  // namespace purser::cli
