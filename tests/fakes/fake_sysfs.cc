// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_sysfs.h"

#include <cstdio>
#include <utility>

namespace purser::fakes {
namespace {

constexpr char kPciBus[] = "sys/devices/pci0000:00/0000:00:02.0/";
constexpr char kNoGid[] = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr char kLinkLocal[] = "fe80:0000:0000:0000:5054:00ff:fe12:3456";
constexpr char kIpv4Mapped[] = "0000:0000:0000:0000:0000:ffff:c000:0201";

const char* StateText(int state) {
  switch (state) {
    case 1:
      return "1: DOWN";
    case 2:
      return "2: INIT";
    case 3:
      return "3: ARMED";
    case 4:
      return "4: ACTIVE";
    default:
      return "0: NOP";
  }
}

const char* PhysStateText(int state) {
  return state == 5 ? "5: LinkUp" : "3: Disabled";
}

std::vector<SysfsGid> RoceGids(const std::string& netdev) {
  return {{0, kLinkLocal, "IB/RoCE v1", netdev},
          {1, kLinkLocal, "RoCE v2", netdev},
          {2, kIpv4Mapped, "IB/RoCE v1", netdev},
          {3, kIpv4Mapped, "RoCE v2", netdev}};
}

}  // namespace

SysfsFakeDevice SysfsRxe(std::string name, std::string netdev) {
  SysfsFakeDevice device{.name = std::move(name), .parent = netdev};
  device.node_guid = "5054:00ff:fe12:3456";
  device.mad = false;
  device.ports[0].rate = "2.5 Gb/sec (1X SDR)";
  device.ports[0].gids = {{0, kLinkLocal, "RoCE v2", netdev},
                          {1, kIpv4Mapped, "RoCE v2", netdev}};
  return device;
}

SysfsFakeDevice SysfsSiw(std::string name, std::string netdev) {
  SysfsFakeDevice device{.name = std::move(name), .node_type = "4: RNIC"};
  device.mad = false;
  device.ports[0].gids = {
      {0, "5254:0012:3456:0000:0000:0000:0000:0000", "IB/RoCE v1", netdev}};
  return device;
}

SysfsFakeDevice SysfsMlx5TwoPorts(std::string name) {
  SysfsFakeDevice device{.name = std::move(name),
                         .pci_address = "0000:3b:00.0"};
  device.netdevs = {{"ib0", 0}, {"ens1f1", 1}};
  device.numa_node = 1;
  SysfsPort infiniband{.link_layer = "InfiniBand", .lid = 0x1a};
  infiniband.gids = {
      {0, "fe80:0000:0000:0000:0c42:a103:0065:4321", "IB/RoCE v1", ""}};
  SysfsPort ethernet;
  ethernet.gids = RoceGids("ens1f1");
  device.ports = {infiniband, ethernet};
  return device;
}

SysfsFakeDevice SysfsMlx5Vf(std::string name, std::string netdev) {
  SysfsFakeDevice device{.name = std::move(name),
                         .pci_address = "0000:3b:00.2",
                         .device = "0x1018"};
  device.netdevs = {{netdev, 0}};
  device.ports[0].gids = RoceGids(netdev);
  return device;
}

SysfsFakeDevice SysfsMlx5VfOf(std::string name, int index) {
  SysfsFakeDevice device =
      SysfsMlx5Vf(std::move(name), "ens1f0v" + std::to_string(index));
  device.pci_address = "0000:3b:00." + std::to_string(index + 2);
  device.pf_address = "0000:3b:00.0";
  device.pf_netdev = "ens1f0";
  device.index = index;
  return device;
}

SysfsFakeDevice SysfsMlx5Sf(std::string name, std::string netdev) {
  SysfsFakeDevice device{.name = std::move(name),
                         .pci_address = "0000:3b:00.0",
                         .auxiliary = "mlx5_core.sf.4"};
  device.pf_netdev = "ens1f0";
  device.index = 88;
  device.ports[0].gids = RoceGids(netdev);
  return device;
}

SysfsFakeDevice SysfsEfa(std::string name) {
  SysfsFakeDevice device{.name = std::move(name),
                         .node_type = "7: unspecified",
                         .pci_address = "0000:00:1e.0",
                         .vendor = "0x1d0f",
                         .device = "0xefa1",
                         .driver = "efa"};
  device.numa_node = -1;
  device.mad = false;
  device.ports[0].link_layer = "Unspecified";
  device.ports[0].gids = {{0, kLinkLocal, "IB/RoCE v1", ""}};
  return device;
}

FakeSysfs::FakeSysfs(FileTree& tree) : tree_(tree) {
  tree_.Directory("sys/class");
  tree_.Directory("dev/infiniband");
}

std::string FakeSysfs::DirectoryOf(const std::string& device) const {
  return devices_.at(device).bus + "/infiniband/" + device;
}

std::string FakeSysfs::PortDirectory(const std::string& device,
                                     int port_num) const {
  return DirectoryOf(device) + "/ports/" + std::to_string(port_num);
}

void FakeSysfs::AddDevice(const SysfsFakeDevice& device) {
  std::string bus = "sys/devices/virtual";
  if (!device.pci_address.empty()) bus = kPciBus + device.pci_address;
  if (!device.auxiliary.empty()) bus += "/" + device.auxiliary;
  devices_[device.name] = {device, bus, {}};

  const std::string directory = DirectoryOf(device.name);
  tree_.Write(directory + "/node_type", device.node_type + "\n");
  tree_.Write(directory + "/node_guid", device.node_guid + "\n");
  tree_.Write(directory + "/fw_ver", "16.35.2000\n");
  if (!device.parent.empty())
    tree_.Write(directory + "/parent", device.parent + "\n");
  if (!device.pci_address.empty()) WriteBus(device, bus);
  for (size_t i = 0; i < device.ports.size(); ++i)
    WritePort(device.name, static_cast<int>(i) + 1, device.ports[i]);
  tree_.Link("sys/class/infiniband/" + device.name,
             "../../" + directory.substr(4));
  if (device.uverbs) AddUverbs(device.name);
  if (!device.mad) return;
  for (size_t i = 1; i <= device.ports.size(); ++i) {
    const int minor = next_umad_++;
    AddCharacterDevice(device.name, "infiniband_mad",
                       "umad" + std::to_string(minor), minor,
                       static_cast<int>(i));
    AddCharacterDevice(device.name, "infiniband_mad",
                       "issm" + std::to_string(minor), 64 + minor,
                       static_cast<int>(i));
  }
}

void FakeSysfs::WriteBus(const SysfsFakeDevice& device,
                         const std::string& bus) {
  const std::string pci = kPciBus + device.pci_address;
  tree_.Write(pci + "/vendor", device.vendor + "\n");
  tree_.Write(pci + "/device", device.device + "\n");
  tree_.Write(pci + "/class", device.pci_class + "\n");
  tree_.Write(pci + "/numa_node", std::to_string(device.numa_node) + "\n");
  if (!device.acpi_index.empty())
    tree_.Write(pci + "/acpi_index", device.acpi_index + "\n");
  if (device.virtual_functions > 0)
    tree_.Write(pci + "/sriov_numvfs",
                std::to_string(device.virtual_functions) + "\n");
  tree_.Directory("sys/bus/pci/drivers/" + device.driver);
  tree_.Link(pci + "/driver",
             tree_.path("sys/bus/pci/drivers/" + device.driver));
  tree_.Link("sys/bus/pci/devices/" + device.pci_address,
             "../../../" + pci.substr(4));
  if (!device.pf_address.empty()) WritePhysicalFunction(device);
  WriteNetdevs(device, bus);
  if (bus != pci) {  // a sub-function
    tree_.Write(bus + "/sfnum", std::to_string(device.index) + "\n");
    tree_.Directory("sys/bus/auxiliary/drivers/mlx5_core.sf");
    tree_.Link(bus + "/driver",
               tree_.path("sys/bus/auxiliary/drivers/mlx5_core.sf"));
    if (!device.pf_netdev.empty())
      tree_.Write(pci + "/net/" + device.pf_netdev + "/type", "1\n");
  }
  tree_.Link(DirectoryOf(device.name) + "/device",
             "../../../" + bus.substr(bus.rfind('/') + 1));
}

void FakeSysfs::WritePhysicalFunction(const SysfsFakeDevice& device) {
  const std::string pf = kPciBus + device.pf_address;
  tree_.Write(pf + "/net/" + device.pf_netdev + "/type", "1\n");
  tree_.Link(pf + "/virtfn" + std::to_string(device.index),
             "../" + device.pci_address);
  tree_.Link(kPciBus + device.pci_address + "/physfn",
             "../" + device.pf_address);
}

void FakeSysfs::WriteNetdevs(const SysfsFakeDevice& device,
                             const std::string& bus) {
  for (const auto& [netdev, dev_port] : device.netdevs) {
    const std::string directory = bus + "/net/" + netdev;
    const bool infiniband =
        device.ports.at(static_cast<size_t>(dev_port)).link_layer ==
        "InfiniBand";
    tree_.Write(directory + "/dev_port", std::to_string(dev_port) + "\n");
    tree_.Write(directory + "/type", infiniband ? "32\n" : "1\n");
    tree_.Link(directory + "/device", "../..");
    tree_.Link("sys/class/net/" + netdev, "../../" + directory.substr(4));
  }
}

void FakeSysfs::AddBond(const std::string& bond,
                        const std::vector<std::string>& slaves) {
  std::string names;
  for (const std::string& slave : slaves) {
    names += (names.empty() ? "" : " ") + slave;
    tree_.Link("sys/class/net/" + slave + "/master", "../" + bond);
  }
  tree_.Write("sys/class/net/" + bond + "/bonding/slaves", names + "\n");
}

void FakeSysfs::WritePort(const std::string& device, int port_num,
                          const SysfsPort& port) {
  const std::string directory = PortDirectory(device, port_num);
  tree_.Write(directory + "/state", std::string(StateText(port.state)) + "\n");
  tree_.Write(directory + "/phys_state",
              std::string(PhysStateText(port.phys_state)) + "\n");
  tree_.Write(directory + "/link_layer", port.link_layer + "\n");
  tree_.Write(directory + "/rate", port.rate + "\n");
  char lid[16];
  std::snprintf(lid, sizeof(lid), "0x%x\n", static_cast<unsigned>(port.lid));
  tree_.Write(directory + "/lid", lid);
  if (port.link_layer == "InfiniBand")
    tree_.Write(directory + "/pkeys/0", port.pkey + "\n");
  for (int index = 0; index < port.gid_table_length; ++index)
    ClearGid(device, port_num, index);
  for (const SysfsGid& gid : port.gids) SetGid(device, port_num, gid);
}

void FakeSysfs::ClearGid(const std::string& device, int port_num, int index) {
  std::erase_if(devices_.at(device).device.ports.at(port_num - 1u).gids,
                [&](const SysfsGid& gid) { return gid.index == index; });
  const std::string port = PortDirectory(device, port_num);
  const std::string number = std::to_string(index);
  tree_.Write(port + "/gids/" + number, std::string(kNoGid) + "\n");
  for (const char* attribute : {"/gid_attrs/types/", "/gid_attrs/ndevs/"}) {
    tree_.Remove(port + attribute + number);
    tree_.Directory(port + attribute + number);
  }
}

void FakeSysfs::SetGid(const std::string& device, int port_num,
                       const SysfsGid& gid) {
  ClearGid(device, port_num, gid.index);
  devices_.at(device).device.ports.at(port_num - 1u).gids.push_back(gid);
  const std::string port = PortDirectory(device, port_num);
  const std::string number = std::to_string(gid.index);
  tree_.Write(port + "/gids/" + number, gid.gid + "\n");
  tree_.Remove(port + "/gid_attrs/types/" + number);
  tree_.Write(port + "/gid_attrs/types/" + number, gid.type + "\n");
  if (gid.netdev.empty()) return;
  tree_.Remove(port + "/gid_attrs/ndevs/" + number);
  tree_.Write(port + "/gid_attrs/ndevs/" + number, gid.netdev + "\n");
}

void FakeSysfs::AddUverbs(const std::string& name) {
  const int minor = next_uverbs_++;
  // The class directory holds a plain file beside the devices.
  tree_.Write("sys/class/infiniband_verbs/abi_version", "6\n");
  AddCharacterDevice(name, "infiniband_verbs", "uverbs" + std::to_string(minor),
                     192 + minor, 0);
}

void FakeSysfs::AddCharacterDevice(const std::string& device,
                                   const std::string& class_name,
                                   const std::string& node, int minor,
                                   int port_num) {
  Added& added = devices_.at(device);
  const std::string directory = added.bus + "/" + class_name + "/" + node;
  tree_.Write(directory + "/ibdev", device + "\n");
  tree_.Write(directory + "/dev", "231:" + std::to_string(minor) + "\n");
  if (port_num > 0)
    tree_.Write(directory + "/port", std::to_string(port_num) + "\n");
  if (!added.device.pci_address.empty())
    tree_.Link(directory + "/device", "../..");
  tree_.Link("sys/class/" + class_name + "/" + node,
             "../../" + directory.substr(4));
  tree_.Write("dev/infiniband/" + node, "");
  added.nodes.push_back(class_name + "/" + node);
}

void FakeSysfs::AddRdmaCm() { tree_.Write("dev/infiniband/rdma_cm", ""); }

void FakeSysfs::RemoveDevice(const std::string& name) {
  const Added& added = devices_.at(name);
  for (const std::string& node : added.nodes) {
    tree_.Remove("sys/class/" + node);
    tree_.Remove(added.bus + "/" + node);
    tree_.Remove("dev/infiniband/" + node.substr(node.find('/') + 1));
  }
  tree_.Remove("sys/class/infiniband/" + name);
  tree_.Remove(DirectoryOf(name));
  devices_.erase(name);
}

void FakeSysfs::SetPortState(const std::string& device, int port_num,
                             int state) {
  const std::string port = PortDirectory(device, port_num);
  tree_.Write(port + "/state", std::string(StateText(state)) + "\n");
  tree_.Write(port + "/phys_state",
              std::string(PhysStateText(state == 4 ? 5 : 3)) + "\n");
}

void FakeSysfs::SetLinkLayer(const std::string& device, int port_num,
                             const std::string& link_layer) {
  tree_.Write(PortDirectory(device, port_num) + "/link_layer",
              link_layer + "\n");
}

void FakeSysfs::RenameNetdev(const std::string& from, const std::string& to) {
  for (auto& [name, added] : devices_) {
    if (added.device.parent == from) {
      added.device.parent = to;
      tree_.Write(DirectoryOf(name) + "/parent", to + "\n");
    }
    if (auto netdev = added.device.netdevs.extract(from); !netdev.empty()) {
      netdev.key() = to;
      added.device.netdevs.insert(std::move(netdev));
      tree_.Remove("sys/class/net/" + from);
      tree_.Remove(added.bus + "/net/" + from);
      WriteBus(added.device, added.bus);
    }
    const std::vector<SysfsPort> ports = added.device.ports;
    for (size_t i = 0; i < ports.size(); ++i) {
      for (SysfsGid gid : ports[i].gids) {
        if (gid.netdev != from) continue;
        gid.netdev = to;
        SetGid(name, static_cast<int>(i) + 1, gid);
      }
    }
  }
}

}  // namespace purser::fakes
