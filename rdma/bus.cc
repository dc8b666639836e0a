// SPDX-License-Identifier: Apache-2.0
#include "rdma/bus.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "rdma/sysfs.h"

namespace purser::rdma {
namespace {

namespace fs = std::filesystem;

// 0000:3b:00.0; the domain may be longer (behind VMD).
bool IsPciAddress(std::string_view name) {
  if (name.size() < 12 || name[name.size() - 2] != '.') return false;
  const size_t colon = name.size() - 8;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i == colon || i == colon + 3) {
      if (name[i] != ':') return false;
    } else if (i != name.size() - 2 &&
               std::isxdigit(static_cast<unsigned char>(name[i])) == 0) {
      return false;
    }
  }
  return true;
}

// "0x15b3" -> "15b3".
std::string HexId(std::string text) {
  if (text.starts_with("0x")) text.erase(0, 2);
  return text;
}

// "mlx5_core.sf", the driver of an auxiliary device, -> "mlx5_core".
std::string ModuleOf(std::string driver) {
  return driver.substr(0, driver.find('.'));
}

// linux/if_arp.h, as ip-link names it.
std::string LinkTypeOf(const fs::path& netdev) {
  constexpr int64_t kEther = 1, kInfiniband = 32;
  const int64_t type =
      LeadingNumber(OptionalAttribute(netdev / "type"), /*otherwise=*/-1);
  if (type == kEther) return "ether";
  return type == kInfiniband ? "infiniband" : "";
}

// The number of a virtual function among those of its physical one, which has a
// link "virtfn3" to it.
int VirtualFunctionIndex(const fs::path& pf, const std::string& address) {
  for (const std::string& name : OptionalDirectory(pf)) {
    if (name.starts_with("virtfn") && LinkName(pf / name) == address)
      return static_cast<int>(LeadingNumber(name.substr(6), -1));
  }
  return -1;
}

void ReadPhysicalFunction(const fs::path& pci, Function& function) {
  fs::path pf = pci;
  std::error_code error;
  if (function.kind == FunctionKind::kPhysical &&
      fs::exists(fs::symlink_status(pci / "physfn", error))) {
    function.kind = FunctionKind::kVirtual;
    pf = fs::canonical(pci / "physfn", error);
    function.index = VirtualFunctionIndex(pf, pci.filename().string());
  }
  function.pf_address = pf.filename().string();
  function.pf_netdevs = OptionalDirectory(pf / "net");
}

void ReadPciFunction(const fs::path& pci, SysfsDevice& out) {
  out.pci_address = pci.filename().string();
  out.vendor_id = HexId(OptionalAttribute(pci / "vendor"));
  out.device_id = HexId(OptionalAttribute(pci / "device"));
  out.numa_node =
      static_cast<int>(LeadingNumber(OptionalAttribute(pci / "numa_node"), -1));
  out.function.pci_class = HexId(OptionalAttribute(pci / "class"));
  out.function.acpi_index = OptionalAttribute(pci / "acpi_index");
  out.function.virtual_functions = static_cast<int>(
      LeadingNumber(OptionalAttribute(pci / "sriov_numvfs"), 0));
  ReadPhysicalFunction(pci, out.function);
}

}  // namespace

void ReadBus(const fs::path& device, SysfsDevice& out) {
  std::error_code error;
  const fs::path bus = fs::canonical(device / "device", error);
  if (error) return;
  Function& function = out.function;
  for (const std::string& name : OptionalDirectory(bus / "net"))
    function.netdevs.push_back({name, LinkTypeOf(bus / "net" / name)});
  function.driver = LinkName(bus / "driver");
  for (fs::path up = bus; up.has_relative_path(); up = up.parent_path()) {
    if (out.driver.empty()) out.driver = ModuleOf(LinkName(up / "driver"));
    if (!IsPciAddress(up.filename().string())) continue;
    function.kind = FunctionKind::kPhysical;
    if (up != bus) {
      function.kind = FunctionKind::kSub;
      function.auxiliary = bus.filename().string();
      function.index =
          static_cast<int>(LeadingNumber(OptionalAttribute(bus / "sfnum"), -1));
    }
    return ReadPciFunction(up, out);
  }
}

std::vector<std::string> FunctionNetdevs(const fs::path& device,
                                         uint8_t port_num) {
  std::vector<std::string> netdevs;
  const fs::path own = device / "device" / "net";
  for (const std::string& name : OptionalDirectory(own)) {
    const int64_t dev_port =
        LeadingNumber(OptionalAttribute(own / name / "dev_port"), 0);
    if (dev_port + 1 == port_num) netdevs.push_back(name);
  }
  return netdevs;
}

std::vector<std::string> BondNetdevs(const fs::path& sysfs_root,
                                     const std::vector<std::string>& netdevs) {
  const fs::path net = sysfs_root / "class" / "net";
  std::set<std::string> bonds;
  for (const std::string& netdev : netdevs) {
    const std::string master = LinkName(net / netdev / "master");
    std::error_code error;
    // A bridge and a VRF are masters too.
    if (!master.empty() && fs::exists(net / master / "bonding", error))
      bonds.insert(master);
    std::istringstream slaves(
        OptionalAttribute(net / netdev / "bonding" / "slaves"));
    for (std::string slave; slaves >> slave;) bonds.insert(slave);
  }
  return {bonds.begin(), bonds.end()};
}

}  // namespace purser::rdma
