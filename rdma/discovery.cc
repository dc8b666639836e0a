// SPDX-License-Identifier: Apache-2.0
#include "rdma/discovery.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/status_macros.h"
#include "rdma/bus.h"
#include "rdma/gid_table.h"
#include "rdma/sysfs.h"
#include "rdma/verbs.h"
#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

namespace fs = std::filesystem;

// "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)".
uint64_t RateMbps(std::string_view text) {
  double gigabits = 0;
  std::from_chars(text.data(), text.data() + text.size(), gigabits);
  return gigabits > 0 ? static_cast<uint64_t>(gigabits * 1000 + 0.5) : 0;
}

LinkLayer ParseLinkLayer(std::string_view text) {
  if (text == "InfiniBand") return LinkLayer::kInfiniband;
  if (text == "Ethernet") return LinkLayer::kEthernet;
  return LinkLayer::kUnknown;
}

PortStatus ReadPort(const fs::path& device, uint8_t port_num, int gids) {
  const fs::path port = device / "ports" / std::to_string(port_num);
  PortStatus status;
  status.port_num = port_num;
  status.port_state =
      static_cast<int>(LeadingNumber(OptionalAttribute(port / "state"), 0));
  status.phys_state = static_cast<int>(
      LeadingNumber(OptionalAttribute(port / "phys_state"), 0));
  status.link_layer = ParseLinkLayer(OptionalAttribute(port / "link_layer"));
  status.rate_mbps = RateMbps(OptionalAttribute(port / "rate"));
  status.lid =
      static_cast<uint16_t>(LeadingNumber(OptionalAttribute(port / "lid"), 0));
  status.gid_table_length = GidTableLength(port);
  status.first_pkey = OptionalAttribute(port / "pkeys" / "0");
  GidTable table = ReadGidTable(port, gids);
  status.gid_index =
      status.link_layer == LinkLayer::kInfiniband ? 0 : table.preferred_index;
  status.gids = std::move(table.gids);
  // InfiniBand GIDs name no netdev.
  status.netdevs = table.netdevs.empty() ? FunctionNetdevs(device, port_num)
                                         : std::move(table.netdevs);
  return status;
}

// How many entries of the port's GID table have to be read.
int GidsToRead(const SysfsDevice* known, uint8_t port_num) {
  if (known == nullptr) return 0;
  for (const PortStatus& port : known->ports)
    if (port.port_num == port_num && !port.gids.empty())
      return port.gids.rbegin()->first + 1;
  return 0;
}

// `known`: null to read all of it.
absl::StatusOr<std::vector<PortStatus>> ReadPorts(
    const fs::path& device, const Discovery::Known* known) {
  const SysfsDevice* before = nullptr;
  if (known != nullptr) {
    const auto found = known->find(device.filename().string());
    if (found != known->end()) before = found->second;
  }
  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          ListDirectory(device / "ports"));
  std::vector<PortStatus> ports;
  for (const std::string& name : names) {
    const int64_t port_num = LeadingNumber(name, 0);
    if (port_num < 1 || port_num > 255) continue;
    const auto number = static_cast<uint8_t>(port_num);
    ports.push_back(ReadPort(
        device, number,
        known == nullptr ? kMostGidsRead : GidsToRead(before, number)));
  }
  std::sort(ports.begin(), ports.end(),
            [](const PortStatus& a, const PortStatus& b) {
              return a.port_num < b.port_num;
            });
  return ports;
}

// Soft-RoCE and soft-iWARP have no bus and no driver link: the node type tells
// them apart.
void ReadVirtual(const fs::path& device, SysfsDevice& out) {
  constexpr int64_t kNodeCa = 1, kNodeRnic = 4;
  const int64_t node_type =
      LeadingNumber(OptionalAttribute(device / "node_type"), 0);
  if (node_type == kNodeCa) out.driver = "rdma_rxe";
  if (node_type == kNodeRnic) out.driver = "siw";
  out.parent_netdev = OptionalAttribute(device / "parent");
  for (const PortStatus& port : out.ports)
    if (out.parent_netdev.empty() && !port.netdevs.empty())
      out.parent_netdev = port.netdevs.front();
}

std::vector<std::string> BondsOf(const fs::path& sysfs_root,
                                 const SysfsDevice& device) {
  std::vector<std::string> netdevs;
  for (const PortStatus& port : device.ports)
    netdevs.insert(netdevs.end(), port.netdevs.begin(), port.netdevs.end());
  for (const Netdev& netdev : device.function.netdevs)
    netdevs.push_back(netdev.name);
  if (!device.parent_netdev.empty()) netdevs.push_back(device.parent_netdev);
  return BondNetdevs(sysfs_root, netdevs);
}

// The character devices of each RDMA device, by its name.
using CharacterDevices = std::map<std::string, std::vector<std::string>>;

absl::StatusOr<CharacterDevices> ReadCharacterDevices(const fs::path& root) {
  CharacterDevices devices;
  const auto names = ListDirectory(root);
  if (!names.ok()) {
    if (IsGone(names.status())) return devices;  // module not loaded
    return names.status();
  }
  for (const std::string& name : *names) {
    const std::string ibdev = OptionalAttribute(root / name / "ibdev");
    if (!ibdev.empty()) devices[ibdev].push_back(name);
  }
  return devices;
}

struct Classes {
  CharacterDevices uverbs, mads;
};

absl::StatusOr<Classes> ReadClasses(const fs::path& sysfs_root) {
  Classes classes;
  PURSER_ASSIGN_OR_RETURN(
      classes.uverbs,
      ReadCharacterDevices(sysfs_root / "class" / "infiniband_verbs"));
  PURSER_ASSIGN_OR_RETURN(
      classes.mads,
      ReadCharacterDevices(sysfs_root / "class" / "infiniband_mad"));
  return classes;
}

void AddCharacterDevices(const Classes& classes, SysfsDevice& out) {
  if (const auto found = classes.uverbs.find(out.name);
      found != classes.uverbs.end())
    out.uverbs = found->second.front();
  const auto found = classes.mads.find(out.name);
  if (found == classes.mads.end()) return;
  for (const std::string& node : found->second)
    (node.starts_with("issm") ? out.issms : out.umads).push_back(node);
}

absl::StatusOr<SysfsDevice> ReadDevice(const fs::path& sysfs_root,
                                       const std::string& name,
                                       const Classes& classes,
                                       const Discovery::Known* known) {
  const fs::path device = sysfs_root / "class" / "infiniband" / name;
  SysfsDevice out;
  out.name = name;
  PURSER_ASSIGN_OR_RETURN(out.ports, ReadPorts(device, known));
  PURSER_ASSIGN_OR_RETURN(out.node_guid, ReadAttribute(device / "node_guid"));
  std::error_code error;
  if (fs::exists(device / "parent", error) ||
      !fs::exists(fs::symlink_status(device / "device", error))) {
    ReadVirtual(device, out);
  } else {
    ReadBus(device, out);
  }
  out.bond_netdevs = BondsOf(sysfs_root, out);
  out.provider = queue_memory::ProviderFromName(out.driver.c_str());
  AddCharacterDevices(classes, out);
  return out;
}

}  // namespace

const char* LinkLayerName(LinkLayer link_layer) {
  switch (link_layer) {
    case LinkLayer::kInfiniband:
      return "InfiniBand";
    case LinkLayer::kEthernet:
      return "Ethernet";
    default:
      return "unknown";
  }
}

Discovery::Discovery(fs::path sysfs_root, fs::path dev_root)
    : sysfs_root_(std::move(sysfs_root)), dev_root_(std::move(dev_root)) {}

absl::StatusOr<std::vector<SysfsDevice>> Discovery::Devices() const {
  return Read(nullptr);
}

absl::StatusOr<std::vector<SysfsDevice>> Discovery::DevicesQuickly(
    const Known& known) const {
  return Read(&known);
}

absl::StatusOr<std::vector<SysfsDevice>> Discovery::Read(
    const Known* known) const {
  std::vector<SysfsDevice> devices;
  const auto names = ListDirectory(sysfs_root_ / "class" / "infiniband");
  if (!names.ok()) {
    if (ErrnoOf(names.status()) == ENOENT) return devices;
    return names.status();
  }
  PURSER_ASSIGN_OR_RETURN(const Classes classes, ReadClasses(sysfs_root_));
  for (const std::string& name : *names) {
    absl::StatusOr<SysfsDevice> device =
        ReadDevice(sysfs_root_, name, classes, known);
    if (device.ok()) {
      devices.push_back(*std::move(device));
    } else if (!IsGone(device.status())) {
      return device.status();
    }
  }
  return devices;
}

absl::StatusOr<std::vector<SysfsDevice>> Discovery::DevicesElsewhere() const {
  const fs::path classes = sysfs_root_ / "class";
  PURSER_ASSIGN_OR_RETURN(const Classes found, ReadClasses(sysfs_root_));
  std::vector<SysfsDevice> devices;
  for (const auto& [name, uverbs] : found.uverbs) {
    std::error_code error;
    const auto seen = fs::symlink_status(classes / "infiniband" / name, error);
    if (fs::exists(seen)) continue;
    SysfsDevice& device = devices.emplace_back();
    device.name = name;
    device.in_other_namespace = true;
    ReadBus(classes / "infiniband_verbs" / uverbs.front(), device);
    device.provider = queue_memory::ProviderFromName(device.driver.c_str());
    AddCharacterDevices(found, device);
  }
  return devices;
}

absl::StatusOr<SysfsDevice> Discovery::Device(const std::string& name) const {
  PURSER_ASSIGN_OR_RETURN(const Classes classes, ReadClasses(sysfs_root_));
  absl::StatusOr<SysfsDevice> device =
      ReadDevice(sysfs_root_, name, classes, nullptr);
  if (device.ok() || !IsGone(device.status())) return device;
  return absl::NotFoundError(
      fmt::format("no RDMA device {} under {}", name,
                  (sysfs_root_ / "class" / "infiniband").string()));
}

std::string Discovery::Fingerprint() const {
  const fs::path classes = sysfs_root_ / "class";
  std::string text;
  for (const std::string& name : OptionalDirectory(classes / "infiniband")) {
    const fs::path device = classes / "infiniband" / name;
    text += name + ' ' + OptionalAttribute(device / "parent") + '\n';
    for (const std::string& netdev :
         OptionalDirectory(device / "device" / "net"))
      text += netdev + '\n';
    for (const std::string& port : OptionalDirectory(device / "ports")) {
      text += port;
      for (const char* attribute :
           {"state", "phys_state", "link_layer", "lid", "gid_attrs/ndevs/0"})
        text += ' ' + OptionalAttribute(device / "ports" / port / attribute);
      text += '\n';
    }
  }
  const fs::path verbs = classes / "infiniband_verbs";
  for (const std::string& name : OptionalDirectory(verbs))
    text += name + ' ' + OptionalAttribute(verbs / name / "ibdev") + '\n';
  for (const std::string& name : OptionalDirectory(dev_root_ / "infiniband"))
    text += name + '\n';
  return text;
}

bool Discovery::SeesFunctionNetdevs() const {
  const fs::path net = sysfs_root_ / "class" / "net";
  std::error_code error;
  for (const std::string& name : OptionalDirectory(net)) {
    if (fs::exists(fs::symlink_status(net / name / "device", error)))
      return true;
  }
  return false;
}

int Discovery::NumaNodes() const {
  int nodes = 0;
  for (const std::string& name :
       OptionalDirectory(sysfs_root_ / "devices" / "system" / "node"))
    if (name.starts_with("node")) ++nodes;
  return nodes;
}

bool Discovery::HasRdmaCm() const {
  std::error_code error;
  return fs::exists(dev_root_ / "infiniband" / "rdma_cm", error);
}

}  // namespace purser::rdma
