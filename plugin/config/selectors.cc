// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/selectors.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/match.h"

namespace purser::plugin {
namespace {

using rdma::FunctionKind;
using rdma::SysfsDevice;

template <typename T>
bool Contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

template <typename T>
bool Takes(const std::vector<T>& list, const T& value) {
  return list.empty() || Contains(list, value);
}

bool TakesGlob(const std::vector<std::string>& globs, const std::string& name) {
  return globs.empty() ||
         std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
         });
}

bool TakesDriver(const std::vector<std::string>& drivers,
                 const SysfsDevice& device) {
  return Takes(drivers, device.driver) ||
         Contains(drivers, device.function.driver);
}

// Whether one of the device's netdevs is in the list.
bool HasNetdevOf(const std::vector<std::string>& if_names,
                 const SysfsDevice& device) {
  auto listed = [&](const std::string& name) {
    return !name.empty() && Contains(if_names, name);
  };
  if (listed(device.parent_netdev)) return true;
  for (const rdma::PortStatus& port : device.ports) {
    if (std::any_of(port.netdevs.begin(), port.netdevs.end(), listed))
      return true;
  }
  for (const rdma::Netdev& netdev : device.function.netdevs)
    if (listed(netdev.name)) return true;
  return std::any_of(device.bond_netdevs.begin(), device.bond_netdevs.end(),
                     listed);
}

bool TakesLink(const std::vector<std::string>& link_types,
               const SysfsDevice& device) {
  return link_types.empty() ||
         std::any_of(device.ports.begin(), device.ports.end(),
                     [&](const rdma::PortStatus& port) {
                       return Contains(link_types, LinkType(port.link_layer));
                     });
}

bool TakesPortState(const std::vector<int>& states, const SysfsDevice& device) {
  return states.empty() ||
         std::any_of(device.ports.begin(), device.ports.end(),
                     [&](const rdma::PortStatus& port) {
                       return Contains(states, port.port_state);
                     });
}

bool TakesPkey(const std::vector<std::string>& pkeys,
               const SysfsDevice& device) {
  return pkeys.empty() || (!device.ports.empty() &&
                           Contains(pkeys, device.ports.front().first_pkey));
}

// "mlx5_core.sf.4" -> "sf".
std::string AuxType(const std::string& auxiliary) {
  const size_t begin = auxiliary.find('.');
  if (begin == std::string::npos) return "";
  const size_t end = auxiliary.find('.', begin + 1);
  return auxiliary.substr(begin + 1, end - begin - 1);
}

bool TakesPhysicalFunction(
    const std::vector<PhysicalFunctionSelector>& selectors,
    const std::vector<std::string>& names, int index) {
  return selectors.empty() ||
         std::any_of(
             selectors.begin(), selectors.end(),
             [&](const PhysicalFunctionSelector& selector) {
               const bool named = std::any_of(
                   names.begin(), names.end(), [&](const std::string& name) {
                     return absl::EqualsIgnoreCase(name, selector.name);
                   });
               return named && (selector.ranges.empty() ||
                                std::any_of(selector.ranges.begin(),
                                            selector.ranges.end(),
                                            [&](const auto& range) {
                                              return index >= range.first &&
                                                     index <= range.last;
                                            }));
             });
}

// All but drivers, ifNames and linkTypes, which the forms read differently.
bool TakesTheRest(const Selectors& selectors, const SysfsDevice& device) {
  const rdma::Function& function = device.function;
  return !selectors.nothing && TakesGlob(selectors.devices, device.name) &&
         TakesGlob(selectors.pci_addresses, device.pci_address) &&
         Takes(selectors.vendors, device.vendor_id) &&
         Takes(selectors.device_ids, device.device_id) &&
         Takes(selectors.acpi_indexes, function.acpi_index) &&
         Takes(selectors.aux_types, AuxType(function.auxiliary)) &&
         Takes(selectors.numa_nodes, device.numa_node) &&
         Takes(selectors.kinds, KindOf(device)) &&
         TakesPkey(selectors.pkeys, device) &&
         TakesPortState(selectors.port_states, device) &&
         TakesPhysicalFunction(selectors.pf_names, function.pf_netdevs,
                               function.index) &&
         TakesPhysicalFunction(selectors.root_devices, {function.pf_address},
                               function.index);
}

bool MatchesAnyDevice(const Selectors& selectors, const SysfsDevice& device) {
  return TakesTheRest(selectors, device) &&
         TakesDriver(selectors.drivers, device) &&
         (selectors.if_names.empty() ||
          HasNetdevOf(selectors.if_names, device)) &&
         TakesLink(selectors.link_types, device);
}

// As both peers see a PCI function: by its driver link, its first netdev alone,
// and that netdev's link type.
bool MatchesPciFunction(const Selectors& selectors, const SysfsDevice& device,
                        const NodeNetwork& network) {
  const rdma::Function& function = device.function;
  if (!function.pci_class.starts_with("02") ||
      !TakesTheRest(selectors, device) ||
      !Takes(selectors.drivers, function.driver))
    return false;
  const bool named = HasNetdevOf(selectors.if_names, device);
  if (function.netdevs.empty() && !network.sees_function_netdevs) {
    return (selectors.if_names.empty() || named) &&
           TakesLink(selectors.link_types, device);
  }
  const rdma::Netdev first =
      function.netdevs.empty() ? rdma::Netdev{} : function.netdevs.front();
  return (named || Takes(selectors.if_names, first.name)) &&
         Takes(selectors.link_types, first.link_type);
}

bool MatchesAsSharedRdmaPlugin(const Selectors& selectors,
                               const SysfsDevice& device,
                               const NodeNetwork& network) {
  switch (device.function.kind) {
    case FunctionKind::kPhysical:
    case FunctionKind::kVirtual:
      return MatchesPciFunction(selectors, device, network);
    case FunctionKind::kSub:
      return !selectors.if_names.empty() && MatchesAnyDevice(selectors, device);
    case FunctionKind::kSoft:
      return !(selectors.if_names.empty() && selectors.drivers.empty()) &&
             MatchesAnyDevice(selectors, device);
  }
  return false;
}

bool HasDefaultRoute(const SysfsDevice& device, const NodeNetwork& network) {
  return std::any_of(
      device.function.netdevs.begin(), device.function.netdevs.end(),
      [&](const rdma::Netdev& netdev) {
        return network.default_route_netdevs.contains(netdev.name);
      });
}

}  // namespace

DeviceKind KindOf(const SysfsDevice& device) {
  // mlx5_bond_0, hns_bond_0, bnxt_re_bond0: the drivers' names for a device
  // over both ports of a card.
  if (device.name.find("_bond") != std::string::npos) return DeviceKind::kBond;
  switch (device.function.kind) {
    case FunctionKind::kPhysical:
      return DeviceKind::kPhysical;
    case FunctionKind::kVirtual:
      return DeviceKind::kVirtual;
    case FunctionKind::kSub:
      return DeviceKind::kSub;
    case FunctionKind::kSoft:
      break;
  }
  return DeviceKind::kSoft;
}

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

bool Matches(const Selectors& selectors, Reach reach, const SysfsDevice& device,
             const NodeNetwork& network) {
  const FunctionKind kind = device.function.kind;
  switch (reach) {
    case Reach::kEveryDevice:
      return MatchesAnyDevice(selectors, device);
    case Reach::kSharedRdmaPlugin:
      return MatchesAsSharedRdmaPlugin(selectors, device, network);
    case Reach::kSriovNetDevice:
      return (kind == FunctionKind::kPhysical ||
              kind == FunctionKind::kVirtual) &&
             device.function.virtual_functions == 0 &&
             !HasDefaultRoute(device, network) &&
             MatchesPciFunction(selectors, device, network);
    case Reach::kSriovAuxNetDevice:
      return kind == FunctionKind::kSub && MatchesAnyDevice(selectors, device);
  }
  return false;
}

}  // namespace purser::plugin
