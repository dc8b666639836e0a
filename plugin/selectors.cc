// SPDX-License-Identifier: Apache-2.0
#include "plugin/selectors.h"

#include <fnmatch.h>

#include <algorithm>

namespace purser::plugin {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool TakesName(const std::vector<std::string>& globs, const std::string& name) {
  return globs.empty() ||
         std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
         });
}

bool TakesValue(const std::vector<std::string>& list,
                const std::string& value) {
  return list.empty() || Contains(list, value);
}

bool TakesNetdev(const std::vector<std::string>& if_names,
                 const rdma::SysfsDevice& device) {
  if (if_names.empty() || Contains(if_names, device.parent_netdev)) return true;
  return std::any_of(device.ports.begin(), device.ports.end(),
                     [&](const rdma::PortStatus& port) {
                       return std::any_of(port.netdevs.begin(),
                                          port.netdevs.end(),
                                          [&](const std::string& netdev) {
                                            return Contains(if_names, netdev);
                                          });
                     });
}

bool TakesLink(const std::vector<std::string>& link_types,
               const rdma::SysfsDevice& device) {
  return link_types.empty() ||
         std::any_of(device.ports.begin(), device.ports.end(),
                     [&](const rdma::PortStatus& port) {
                       return Contains(link_types, LinkType(port.link_layer));
                     });
}

}  // namespace

std::string LinkType(rdma::LinkLayer link_layer) {
  switch (link_layer) {
    case rdma::LinkLayer::kInfiniband:
      return "infiniband";
    case rdma::LinkLayer::kEthernet:
      return "ether";
    case rdma::LinkLayer::kUnknown:
      break;
  }
  return "";
}

bool Matches(const Selectors& selectors, const rdma::SysfsDevice& device) {
  return TakesName(selectors.devices, device.name) &&
         TakesValue(selectors.drivers, device.driver) &&
         TakesNetdev(selectors.if_names, device) &&
         TakesLink(selectors.link_types, device) &&
         TakesValue(selectors.vendors, device.vendor_id) &&
         TakesValue(selectors.device_ids, device.device_id);
}

}  // namespace purser::plugin
