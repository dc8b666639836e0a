// SPDX-License-Identifier: Apache-2.0
//
// RDMA devices and ports as sysfs shows them, under a given root: no device is
// opened, no privilege needed. Failure to read is never mistaken for "no
// devices".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "queue_memory/queue_memory.h"
#include "rdma/function.h"

namespace purser::rdma {

enum class LinkLayer { kUnknown, kInfiniband, kEthernet };
const char* LinkLayerName(
    LinkLayer link_layer);  // "InfiniBand", "Ethernet", "unknown"

// Values and names of ibv_port_state and the physical states.
struct PortStatus {
  uint8_t port_num = 0;
  int port_state = 0;  // 4: ACTIVE
  int phys_state = 0;  // 5: LinkUp
  LinkLayer link_layer = LinkLayer::kUnknown;
  uint64_t rate_mbps = 0;  // 0: not told
  uint16_t lid = 0;
  uint32_t gid_table_length = 0;
  int gid_index = -1;      // of the GID to connect with; -1: there is none
  std::string first_pkey;  // "0xffff"; "" on Ethernet
  std::vector<std::string> netdevs;  // of the port's GIDs, without repeats
  std::map<int, std::string> gids;   // by index; without empty entries
  bool active() const { return port_state == 4; }
};

struct SysfsDevice {
  std::string name;  // mlx5_0
  queue_memory::Provider provider = queue_memory::Provider::kUnknown;
  std::string driver;  // kernel driver: mlx5_core, rdma_rxe, siw; "" unknown
  std::string node_guid;
  std::string pci_address;           // 0000:3b:00.0; "" for virtual devices
  std::string vendor_id, device_id;  // 4 hex digits, lower case, without 0x; ""
                                     // for virtual devices
  std::string parent_netdev;         // of soft-RoCE and soft-iWARP
  Function function;
  // Bonds over the device's netdevs, and the slaves of those that are bonds.
  std::vector<std::string> bond_netdevs;
  int numa_node = -1;  // -1: not known
  std::vector<PortStatus> ports;
  std::string uverbs;  // uverbs0; "" while the driver has not made it
  std::vector<std::string> umads, issms;  // umad0, issm0
  // Of DevicesElsewhere(): without ports and netdevs.
  bool in_other_namespace = false;
};

class Discovery {
 public:
  // "/sys" and "/dev", or file trees like them.
  explicit Discovery(std::filesystem::path sysfs_root = "/sys",
                     std::filesystem::path dev_root = "/dev");

  // All devices, by name. An absent class/infiniband is an empty list (no
  // driver loaded). A device that vanishes while it is read is left out.
  absl::StatusOr<std::vector<SysfsDevice>> Devices() const;
  // The same for a fraction of the time: of each port's GIDs, some hundred
  // files, as many as `known` has of it, and on to the first gap. `known` are
  // devices of Devices(), by name. What an event is answered by; Devices() is
  // to follow.
  using Known = std::map<std::string, const SysfsDevice*>;
  absl::StatusOr<std::vector<SysfsDevice>> DevicesQuickly(
      const Known& known) const;
  // Devices of other network namespaces, where each belongs to one: of them
  // only the character devices are seen. (In shared mode there are none, but
  // for devices that come or go at this moment.)
  absl::StatusOr<std::vector<SysfsDevice>> DevicesElsewhere() const;
  absl::StatusOr<SysfsDevice> Device(const std::string& name) const;
  // Differs when a device, a character device, a port's state, link layer or
  // LID, or the name of its network interface has changed since. Much cheaper
  // than Devices(): nine files and four directories for a device with one port.
  std::string Fingerprint() const;
  // Whether any netdev that is seen from here belongs to a device of the bus.
  // If not, this is a pod's network namespace, and a function without a netdev
  // may have one.
  bool SeesFunctionNetdevs() const;
  // How many NUMA nodes the machine has; 0: not told.
  int NumaNodes() const;
  // Whether dev_root/infiniband/rdma_cm exists.
  bool HasRdmaCm() const;

 private:
  absl::StatusOr<std::vector<SysfsDevice>> Read(const Known* known) const;

  std::filesystem::path sysfs_root_, dev_root_;
};

}  // namespace purser::rdma
