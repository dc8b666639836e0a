// SPDX-License-Identifier: Apache-2.0
#include "plugin/device_health.h"

#include <algorithm>
#include <array>
#include <span>

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

const char* NameOf(std::span<const char* const> names, int value) {
  return value >= 0 && value < static_cast<int>(names.size())
             ? names[static_cast<size_t>(value)]
             : "UNKNOWN";
}

// enum ibv_port_state.
constexpr std::array kPortStates = {"NOP",   "DOWN",   "INIT",
                                    "ARMED", "ACTIVE", "ACTIVE_DEFER"};
// As sysfs has them; 0 is what drivers say that do not tell.
constexpr std::array kPhysStates = {"unknown",
                                    "Sleep",
                                    "Polling",
                                    "Disabled",
                                    "PortConfigurationTraining",
                                    "LinkUp",
                                    "LinkErrorRecovery",
                                    "Phy Test"};
constexpr int kPhysUnknown = 0, kLinkUp = 5, kLinkErrorRecovery = 6;

}  // namespace

const char* DeviceHealthName(DeviceHealth health) {
  switch (health) {
    case DeviceHealth::kHealthy:
      return "healthy";
    case DeviceHealth::kOtherNamespace:
      return "other_netns";
    case DeviceHealth::kPortDown:
      return "port_down";
    case DeviceHealth::kFatal:
      return "fatal";
    case DeviceHealth::kIncomplete:
      return "incomplete";
  }
  return "unknown";
}

bool PortIsUp(const rdma::PortStatus& port) {
  return port.active() &&
         (port.phys_state == kPhysUnknown || port.phys_state == kLinkUp ||
          port.phys_state == kLinkErrorRecovery);
}

std::string PortSummary(const rdma::SysfsDevice& device) {
  std::string summary;
  for (const rdma::PortStatus& port : device.ports) {
    summary += fmt::format("{}port {} {} {}", summary.empty() ? "" : ", ",
                           port.port_num, NameOf(kPortStates, port.port_state),
                           rdma::LinkLayerName(port.link_layer));
    if (port.phys_state != kLinkUp && port.phys_state != kPhysUnknown)
      summary += fmt::format(" ({})", NameOf(kPhysStates, port.phys_state));
  }
  return summary.empty() ? "no port" : summary;
}

Judgement JudgeDevice(const std::filesystem::path& dev_root,
                      rdma::SysfsDevice& device) {
  const std::filesystem::path nodes = dev_root / "infiniband";
  std::error_code ignored;
  // Where the directory cannot be seen at all, sysfs alone is believed.
  const bool nodes_visible = std::filesystem::is_directory(nodes, ignored);
  auto is_missing = [&](const std::string& node) {
    std::error_code unreadable;
    return nodes_visible && !std::filesystem::exists(nodes / node, unreadable);
  };
  std::erase_if(device.umads, is_missing);
  std::erase_if(device.issms, is_missing);
  if (device.uverbs.empty()) {
    return {DeviceHealth::kIncomplete,
            "it has no uverbs device: load the kernel module ib_uverbs, or "
            "wait for the driver to finish"};
  }
  if (is_missing(device.uverbs)) {
    return {DeviceHealth::kIncomplete,
            fmt::format("{} does not exist (yet)",
                        (nodes / device.uverbs).string())};
  }
  if (device.in_other_namespace) {
    return {DeviceHealth::kOtherNamespace,
            "it is in another network namespace (of a pod that uses it)"};
  }
  if (std::none_of(device.ports.begin(), device.ports.end(), PortIsUp))
    return {DeviceHealth::kPortDown,
            "no port is ACTIVE: " + PortSummary(device)};
  return {};
}

}  // namespace purser::plugin
