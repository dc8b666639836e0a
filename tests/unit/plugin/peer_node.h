// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugin/inventory.h"
#include "plugin/make_resources.h"
#include "tests/unit/plugin/rdma_node.h"

namespace purser::plugin {

// A node with a device of each kind that the other plugins' rules tell apart,
// and what a configuration would advertise on it.
class PeerNode {
 public:
  PeerNode() {
    using fakes::SysfsFakeDevice;
    SysfsFakeDevice roce =
        Function("mlx5_0", "0000:3b:00.0", "ens1f0", "0x1017");
    node_.sysfs().AddDevice(roce);
    SysfsFakeDevice infiniband = fakes::SysfsMlx5TwoPorts("mlx5_1");
    infiniband.pci_address = "0000:3b:00.1";
    infiniband.netdevs = {{"ib0", 0}};
    infiniband.ports.pop_back();
    node_.sysfs().AddDevice(infiniband);
    // Without IPoIB: a port that no netdev belongs to.
    SysfsFakeDevice bare = infiniband;
    bare.name = "mlx5_2";
    bare.pci_address = "0000:5e:00.0";
    bare.device = "0x101d";
    bare.netdevs.clear();
    node_.sysfs().AddDevice(bare);
    // Two ports on one function, whose first netdev by name is ens2.
    SysfsFakeDevice dual = fakes::SysfsMlx5TwoPorts("mlx4_0");
    dual.pci_address = "0000:af:00.0";
    dual.device = "0x1007";
    dual.driver = "mlx4_core";
    dual.netdevs = {{"ib9", 0}, {"ens2", 1}};
    node_.sysfs().AddDevice(dual);
    // No umad node, as iWARP has none.
    SysfsFakeDevice irdma =
        Function("irdma0", "0000:18:00.0", "ens4", "0x1592");
    irdma.vendor = "0x8086";
    irdma.driver = "ice";
    irdma.mad = false;
    node_.sysfs().AddDevice(irdma);
    AddVirtualFunctions();
    SysfsFakeDevice sf = fakes::SysfsMlx5Sf("mlx5_sf", "en3f0pf0sf88");
    sf.pf_netdev = "ens1f0";
    node_.sysfs().AddDevice(sf);
    SysfsFakeDevice bond =
        Function("mlx5_bond_0", "0000:d8:00.0", "ens6f0", "0x101d");
    bond.ports[0].gids = {{0, "fe80::1", "RoCE v2", "bond0"}};
    node_.sysfs().AddDevice(bond);
    node_.sysfs().AddBond("bond0", {"ens6f0", "ens6f1"});
    node_.AddRxe("rxe0");
  }

  // "rdma/a=1000 rdma/b=0", in the order of the configuration.
  std::string Advertised(const Config& config) const {
    Config here = config;
    here.proc_root = node_.proc_root();
    const auto resources = MakeResources(here);
    if (!resources.ok()) return std::string(resources.status().message());
    const rdma::Discovery discovery(node_.sysfs_root(), node_.dev_root());
    Inventory inventory(discovery, node_.dev_root(), node_.proc_root(),
                        InventoryOptions(here));
    if (absl::Status scan = inventory.Scan(); !scan.ok())
      return scan.ToString();
    std::string text;
    for (const std::unique_ptr<Resource>& resource : *resources) {
      text +=
          fmt::format("{}{}={}", text.empty() ? "" : " ", resource->name(),
                      resource->Advertise(*inventory.snapshot()).allocatable());
    }
    return text;
  }

  RdmaNode& node() { return node_; }

 private:
  static fakes::SysfsFakeDevice Function(const std::string& name,
                                         const std::string& address,
                                         const std::string& netdev,
                                         const std::string& device_id) {
    fakes::SysfsFakeDevice device = fakes::SysfsMlx5Vf(name, netdev);
    device.pci_address = address;
    device.device = device_id;
    return device;
  }

  // Four of ens3f0, which is an RDMA device itself.
  void AddVirtualFunctions() {
    fakes::SysfsFakeDevice pf =
        Function("mlx5_pf", "0000:86:00.0", "ens3f0", "0x101b");
    pf.virtual_functions = 4;
    node_.sysfs().AddDevice(pf);
    for (int i = 0; i < 4; ++i) {
      fakes::SysfsFakeDevice vf = Function(
          "mlx5_vf" + std::to_string(i), "0000:86:00." + std::to_string(i + 1),
          "ens3f0v" + std::to_string(i), "0x101e");
      vf.pf_address = "0000:86:00.0";
      vf.pf_netdev = "ens3f0";
      vf.index = i;
      node_.sysfs().AddDevice(vf);
    }
  }

  RdmaNode node_;
};

}  // namespace purser::plugin
