// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace purser::rdma {

struct Netdev {
  std::string name;
  std::string link_type;  // as ip-link shows it: "ether", "infiniband"; or ""
};

enum class FunctionKind {
  kSoft,      // none: soft-RoCE, soft-iWARP
  kPhysical,  // a PCI function, or the physical one of several
  kVirtual,   // an SR-IOV virtual function
  kSub,       // a sub-function: an auxiliary device below a PCI function
};

// The function behind an RDMA device, as the bus shows it. What PCI tells of a
// sub-function is of the function that it is carved from.
struct Function {
  FunctionKind kind = FunctionKind::kSoft;
  std::string driver;      // of the function itself: mlx5_core, mlx5_core.sf
  std::string pci_class;   // 6 hex digits: 020000 Ethernet, 020700 InfiniBand
  std::string acpi_index;  // "" mostly
  std::string auxiliary;   // of a sub-function: mlx5_core.sf.4
  // The physical function that a virtual one or a sub-function belongs to;
  // others are their own.
  std::string pf_address;
  std::vector<std::string> pf_netdevs;  // by name
  int index = -1;  // of a virtual or sub-function within its physical one
  int virtual_functions = 0;    // configured on a physical function
  std::vector<Netdev> netdevs;  // of the function itself, by name
};

}  // namespace purser::rdma
