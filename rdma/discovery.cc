// SPDX-License-Identifier: Apache-2.0
#include "rdma/discovery.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "base/status_macros.h"
#include "rdma/sysfs.h"
#include "rdma/verbs.h"
#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

namespace fs = std::filesystem;

// A port has up to 256 GIDs on hardware (1024 on soft-RoCE); those of its
// netdevs fill the table from below.
constexpr int kMaxGidsRead = 256;

// An attribute that a device may lack, or that its driver cannot answer just
// now.
std::string Optional(const fs::path& path) {
  return ReadAttribute(path).value_or("");
}

// The number that a text begins with: "4: ACTIVE", "0x1a", "-1".
int64_t LeadingNumber(std::string_view text, int64_t otherwise) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  int64_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

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

std::vector<std::string> GidNetdevs(const fs::path& port) {
  std::vector<std::string> netdevs;
  for (int index = 0; index < kMaxGidsRead; ++index) {
    const absl::StatusOr<std::string> name =
        ReadAttribute(port / "gid_attrs" / "ndevs" / std::to_string(index));
    if (!name.ok()) {
      if (IsGone(name.status())) break;  // the table's end
      continue;                          // EINVAL: an empty entry
    }
    if (!name->empty() &&
        std::find(netdevs.begin(), netdevs.end(), *name) == netdevs.end())
      netdevs.push_back(*name);
  }
  return netdevs;
}

// InfiniBand GIDs name no netdev: take the function's own of that port.
std::vector<std::string> FunctionNetdevs(const fs::path& device,
                                         uint8_t port_num) {
  std::vector<std::string> netdevs;
  const auto names = ListDirectory(device / "device" / "net");
  if (!names.ok()) return netdevs;
  for (const std::string& name : *names) {
    const int64_t dev_port = LeadingNumber(
        Optional(device / "device" / "net" / name / "dev_port"), 0);
    if (dev_port + 1 == port_num) netdevs.push_back(name);
  }
  return netdevs;
}

PortStatus ReadPort(const fs::path& device, uint8_t port_num) {
  const fs::path port = device / "ports" / std::to_string(port_num);
  PortStatus status;
  status.port_num = port_num;
  status.port_state =
      static_cast<int>(LeadingNumber(Optional(port / "state"), 0));
  status.phys_state =
      static_cast<int>(LeadingNumber(Optional(port / "phys_state"), 0));
  status.link_layer = ParseLinkLayer(Optional(port / "link_layer"));
  status.rate_mbps = RateMbps(Optional(port / "rate"));
  status.lid = static_cast<uint16_t>(LeadingNumber(Optional(port / "lid"), 0));
  status.netdevs = GidNetdevs(port);
  if (status.netdevs.empty())
    status.netdevs = FunctionNetdevs(device, port_num);
  return status;
}

absl::StatusOr<std::vector<PortStatus>> ReadPorts(const fs::path& device) {
  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          ListDirectory(device / "ports"));
  std::vector<PortStatus> ports;
  for (const std::string& name : names) {
    const int64_t port_num = LeadingNumber(name, 0);
    if (port_num >= 1 && port_num <= 255)
      ports.push_back(ReadPort(device, static_cast<uint8_t>(port_num)));
  }
  std::sort(ports.begin(), ports.end(),
            [](const PortStatus& a, const PortStatus& b) {
              return a.port_num < b.port_num;
            });
  return ports;
}

// Fills what comes from the bus: `device` links to the PCI function, or to an
// auxiliary device (sub-function) somewhere below it.
void ReadBus(const fs::path& device, SysfsDevice& out) {
  std::error_code error;
  fs::path bus = fs::canonical(device / "device", error);
  if (error) return;
  for (; bus.has_relative_path(); bus = bus.parent_path()) {
    if (out.driver.empty()) out.driver = ModuleOf(LinkName(bus / "driver"));
    if (!IsPciAddress(bus.filename().string())) continue;
    out.pci_address = bus.filename().string();
    out.vendor_id = HexId(Optional(bus / "vendor"));
    out.device_id = HexId(Optional(bus / "device"));
    out.numa_node =
        static_cast<int>(LeadingNumber(Optional(bus / "numa_node"), -1));
    return;
  }
}

// Soft-RoCE and soft-iWARP have no bus and no driver link: the node type tells
// them apart.
void ReadVirtual(const fs::path& device, SysfsDevice& out) {
  constexpr int64_t kNodeCa = 1, kNodeRnic = 4;
  const int64_t node_type = LeadingNumber(Optional(device / "node_type"), 0);
  if (node_type == kNodeCa) out.driver = "rdma_rxe";
  if (node_type == kNodeRnic) out.driver = "siw";
  out.parent_netdev = Optional(device / "parent");
  for (const PortStatus& port : out.ports)
    if (out.parent_netdev.empty() && !port.netdevs.empty())
      out.parent_netdev = port.netdevs.front();
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
    const std::string ibdev = Optional(root / name / "ibdev");
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

absl::StatusOr<SysfsDevice> ReadDevice(const fs::path& sysfs_root,
                                       const std::string& name,
                                       const Classes& classes) {
  const fs::path device = sysfs_root / "class" / "infiniband" / name;
  SysfsDevice out;
  out.name = name;
  PURSER_ASSIGN_OR_RETURN(out.ports, ReadPorts(device));
  PURSER_ASSIGN_OR_RETURN(out.node_guid, ReadAttribute(device / "node_guid"));
  ReadBus(device, out);
  std::error_code error;
  if (fs::exists(device / "parent", error) ||
      !fs::exists(fs::symlink_status(device / "device", error)))
    ReadVirtual(device, out);
  out.provider = queue_memory::ProviderFromName(out.driver.c_str());
  if (const auto found = classes.uverbs.find(name);
      found != classes.uverbs.end())
    out.uverbs = found->second.front();
  if (const auto found = classes.mads.find(name); found != classes.mads.end())
    for (const std::string& node : found->second)
      (node.starts_with("issm") ? out.issms : out.umads).push_back(node);
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
  std::vector<SysfsDevice> devices;
  const auto names = ListDirectory(sysfs_root_ / "class" / "infiniband");
  if (!names.ok()) {
    if (ErrnoOf(names.status()) == ENOENT) return devices;
    return names.status();
  }
  PURSER_ASSIGN_OR_RETURN(const Classes classes, ReadClasses(sysfs_root_));
  for (const std::string& name : *names) {
    absl::StatusOr<SysfsDevice> device = ReadDevice(sysfs_root_, name, classes);
    if (device.ok()) {
      devices.push_back(*std::move(device));
    } else if (!IsGone(device.status())) {
      return device.status();
    }
  }
  return devices;
}

absl::StatusOr<SysfsDevice> Discovery::Device(const std::string& name) const {
  PURSER_ASSIGN_OR_RETURN(const Classes classes, ReadClasses(sysfs_root_));
  absl::StatusOr<SysfsDevice> device = ReadDevice(sysfs_root_, name, classes);
  if (device.ok() || !IsGone(device.status())) return device;
  return absl::NotFoundError(
      fmt::format("no RDMA device {} under {}", name,
                  (sysfs_root_ / "class" / "infiniband").string()));
}

std::string Discovery::Fingerprint() const {
  const fs::path classes = sysfs_root_ / "class";
  auto names_in = [](const fs::path& directory) {
    return ListDirectory(directory).value_or(std::vector<std::string>{});
  };
  std::string text;
  for (const std::string& name : names_in(classes / "infiniband")) {
    const fs::path device = classes / "infiniband" / name;
    text += name + ' ' + Optional(device / "parent") + '\n';
    for (const std::string& netdev : names_in(device / "device" / "net"))
      text += netdev + '\n';
    for (const std::string& port : names_in(device / "ports")) {
      text += port;
      for (const char* attribute :
           {"state", "phys_state", "link_layer", "lid", "gid_attrs/ndevs/0"})
        text += ' ' + Optional(device / "ports" / port / attribute);
      text += '\n';
    }
  }
  const fs::path verbs = classes / "infiniband_verbs";
  for (const std::string& name : names_in(verbs))
    text += name + ' ' + Optional(verbs / name / "ibdev") + '\n';
  for (const std::string& name : names_in(dev_root_ / "infiniband"))
    text += name + '\n';
  return text;
}

bool Discovery::HasRdmaCm() const {
  std::error_code error;
  return fs::exists(dev_root_ / "infiniband" / "rdma_cm", error);
}

}  // namespace purser::rdma
