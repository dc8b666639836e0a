// SPDX-License-Identifier: Apache-2.0
//
// The sysfs fake: the part of /sys that shows RDMA devices, as files and links
// under a FileTree, laid out as the kernel does (class links into devices/, PCI
// functions with their netdevs, /dev/infiniband nodes as plain files). An
// attribute that the kernel would refuse to read (an empty GID's type) is a
// directory, so reading it fails. Not thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/fakes/file_tree.h"

namespace purser::fakes {

struct SysfsGid {
  int index = 0;
  std::string gid;     // "fe80:0000:0000:0000:0000:00ff:fe00:0001"
  std::string type;    // "RoCE v2", "IB/RoCE v1"
  std::string netdev;  // "": the kernel refuses to tell
};

struct SysfsPort {
  std::string link_layer = "Ethernet";
  int state = 4;       // ACTIVE
  int phys_state = 5;  // LinkUp
  std::string rate = "100 Gb/sec (4X EDR)";
  int lid = 0;
  std::string pkey = "0xffff";
  int gid_table_length = 8;
  std::vector<SysfsGid> gids;
};

struct SysfsFakeDevice {
  std::string name;
  std::string node_type = "1: CA";
  std::string node_guid = "0c42:a103:0065:4321";
  std::string parent;       // netdev named by the `parent` attribute; "": none
  std::string pci_address;  // "": a virtual device
  std::string auxiliary;    // "mlx5_core.sf.4": a sub-function of that function
  std::string vendor = "0x15b3", device = "0x1017", driver = "mlx5_core";
  std::string pci_class = "0x020000", acpi_index;
  int numa_node = 0;
  std::string pf_address;     // of a virtual function: its physical one
  std::string pf_netdev;      // of the physical function
  int index = 0;              // of a virtual function, or a sub-function
  int virtual_functions = 0;  // configured on a physical function
  std::map<std::string, int> netdevs;  // of the function: name -> dev_port
  std::vector<SysfsPort> ports = {SysfsPort{}};
  bool uverbs = true;  // false: the driver has not made it yet
  bool mad = true;     // umad and issm, one each per port
};

// Soft-RoCE: an Ethernet port with a link-local and an IPv4-mapped GID.
SysfsFakeDevice SysfsRxe(std::string name, std::string netdev);
SysfsFakeDevice SysfsSiw(std::string name, std::string netdev);
// Port 1 InfiniBand (netdev ib0), port 2 Ethernet (netdev ens1f1).
SysfsFakeDevice SysfsMlx5TwoPorts(std::string name);
SysfsFakeDevice SysfsMlx5Vf(std::string name, std::string netdev);
// Virtual function 0000:3b:00.<index + 2> of 0000:3b:00.0, whose netdev is
// ens1f0.
SysfsFakeDevice SysfsMlx5VfOf(std::string name, int index);
// A sub-function of 0000:3b:00.0.
SysfsFakeDevice SysfsMlx5Sf(std::string name, std::string netdev);
// No netdev, no umad.
SysfsFakeDevice SysfsEfa(std::string name);

class FakeSysfs {
 public:
  explicit FakeSysfs(FileTree& tree);

  std::filesystem::path sysfs_root() const { return tree_.path("sys"); }
  std::filesystem::path dev_root() const { return tree_.path("dev"); }

  // Its uverbs device gets a number that none had before.
  void AddDevice(const SysfsFakeDevice& device);
  void RemoveDevice(const std::string& name);
  // uverbs and its node appear: the driver is done loading.
  void AddUverbs(const std::string& name);
  void AddRdmaCm();
  void SetPortState(const std::string& device, int port_num, int state);
  void SetLinkLayer(const std::string& device, int port_num,
                    const std::string& link_layer);
  void SetGid(const std::string& device, int port_num, const SysfsGid& gid);
  void ClearGid(const std::string& device, int port_num, int index);
  // Makes `bond` a bond over `slaves`.
  void AddBond(const std::string& bond, const std::vector<std::string>& slaves);
  void RenameNetdev(const std::string& from, const std::string& to);

  // devices/… directory of a device, relative to the tree's root, for faults of
  // a test's own.
  std::string DirectoryOf(const std::string& device) const;

 private:
  void WriteBus(const SysfsFakeDevice& device, const std::string& bus);
  void WritePhysicalFunction(const SysfsFakeDevice& device);
  void WriteNetdevs(const SysfsFakeDevice& device, const std::string& bus);
  void WritePort(const std::string& device, int port_num,
                 const SysfsPort& port);
  std::string PortDirectory(const std::string& device, int port_num) const;
  void AddCharacterDevice(const std::string& device,
                          const std::string& class_name,
                          const std::string& node, int minor, int port_num);

  struct Added {
    SysfsFakeDevice device;
    std::string bus;                 // directory of the PCI function, …
    std::vector<std::string> nodes;  // "infiniband_verbs/uverbs0", …
  };
  FileTree& tree_;
  std::map<std::string, Added> devices_;
  int next_uverbs_ = 0, next_umad_ = 0;
};

}  // namespace purser::fakes
