// SPDX-License-Identifier: Apache-2.0
//
// Which RDMA devices a pool takes: pure predicates over what discovery found.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma/discovery.h"

namespace purser::plugin {

// "ens1f0", "ens1f0#0-3,7", "0000:3b:00.0#2": a physical function, and of its
// virtual or sub-functions those with these numbers.
struct PhysicalFunctionSelector {
  struct Range {
    int first = 0, last = 0;
    bool operator==(const Range&) const = default;
  };
  std::string name;           // of a netdev, or a PCI address; in any case
  std::vector<Range> ranges;  // empty: all, and the physical function itself
  bool operator==(const PhysicalFunctionSelector&) const = default;
};
// InvalidArgument shows the form.
absl::StatusOr<PhysicalFunctionSelector> ParsePhysicalFunction(
    std::string_view text);

// What a device is, beside what drives it.
enum class DeviceKind { kPhysical, kVirtual, kSub, kBond, kSoft };
DeviceKind KindOf(const rdma::SysfsDevice& device);

// OR within a list, AND between the lists, an empty list takes all. Named as
// the known plugins name them where the meaning is equal; `devices` are RDMA
// device names.
struct Selectors {
  std::vector<std::string> devices;        // globs: "mlx5_*", "rxe0"
  std::vector<std::string> pci_addresses;  // globs: "0000:3b:*"
  std::vector<std::string> drivers;        // "mlx5_core", "rdma_rxe"
  // Of a port, of the function, of a bond over them or a slave of theirs.
  std::vector<std::string> if_names;
  std::vector<std::string> link_types;  // "ether", "infiniband"
  std::vector<std::string> vendors;     // "15b3"
  std::vector<std::string> device_ids;  // "1017"
  std::vector<std::string> acpi_indexes;
  std::vector<std::string> aux_types;  // "sf"
  std::vector<std::string> pkeys;      // "0x8001": the first of port 1
  std::vector<PhysicalFunctionSelector> pf_names, root_devices;
  std::vector<int> numa_nodes;   // -1: not known
  std::vector<int> port_states;  // 4: a port is ACTIVE
  std::vector<DeviceKind> kinds;
  bool nothing = false;  // cannot be told from here, so it takes none
  bool operator==(const Selectors&) const = default;
};

// Which devices the selectors are held against, and how exactly.
enum class Reach {
  kEveryDevice,
  // As the shared RDMA plugin: PCI functions of class 02 (network), the first
  // netdev of each. Others only where `if_names` has one of their netdevs, or,
  // for soft devices, `drivers` their driver.
  kSharedRdmaPlugin,
  // As the SR-IOV plugin's netDevice: PCI functions of class 02, but neither
  // physical functions with virtual ones nor what has the default route.
  kSriovNetDevice,
  kSriovAuxNetDevice,  // sub-functions
};

// What there is to know of the network beside the devices.
struct NodeNetwork {
  // False in a pod's network namespace: a function's netdevs are not seen.
  bool sees_function_netdevs = false;
  std::set<std::string> default_route_netdevs;  // IPv4
};

bool Matches(const Selectors& selectors, Reach reach,
             const rdma::SysfsDevice& device, const NodeNetwork& network);

// "ether", "infiniband", as ip-link shows them; "" unknown.
std::string LinkType(rdma::LinkLayer link_layer);

}  // namespace purser::plugin
