// SPDX-License-Identifier: Apache-2.0
#include "rdma/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/fakes/fake_sysfs.h"

namespace purser::rdma {
namespace {

using fakes::FakeSysfs;
using fakes::FileTree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DiscoveryTest : public ::testing::Test {
 protected:
  SysfsDevice Only() {
    const auto devices = discovery_.Devices();
    EXPECT_TRUE(devices.ok()) << devices.status();
    if (!devices.ok() || devices->size() != 1) {
      ADD_FAILURE() << "not one device";
      return {};
    }
    return devices->front();
  }

  FileTree tree_;
  FakeSysfs sysfs_{tree_};
  Discovery discovery_{sysfs_.sysfs_root(), sysfs_.dev_root()};
};

TEST_F(DiscoveryTest, NoDriverLoadedIsAnEmptyList) {
  const auto devices = discovery_.Devices();
  ASSERT_TRUE(devices.ok());
  EXPECT_THAT(*devices, IsEmpty());
}

TEST_F(DiscoveryTest, SoftRoce) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "dummy1"));
  const SysfsDevice device = Only();
  EXPECT_EQ(device.name, "rxe0");
  EXPECT_EQ(device.driver, "rdma_rxe");
  EXPECT_EQ(device.provider, queue_memory::Provider::kRxe);
  EXPECT_EQ(device.pci_address, "");
  EXPECT_EQ(device.vendor_id, "");
  EXPECT_EQ(device.parent_netdev, "dummy1");
  EXPECT_EQ(device.numa_node, -1);
  EXPECT_EQ(device.uverbs, "uverbs0");
  EXPECT_EQ(device.node_guid, "5054:00ff:fe12:3456");
  EXPECT_EQ(device.function.kind, FunctionKind::kSoft);
  EXPECT_EQ(device.function.driver, "");
  EXPECT_THAT(device.umads, IsEmpty());
  ASSERT_EQ(device.ports.size(), 1u);
  const PortStatus& port = device.ports[0];
  EXPECT_EQ(port.port_num, 1);
  EXPECT_TRUE(port.active());
  EXPECT_EQ(port.phys_state, 5);
  EXPECT_EQ(port.link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(port.rate_mbps, 2500u);
  EXPECT_EQ(port.lid, 0);
  EXPECT_THAT(port.netdevs, ElementsAre("dummy1"));
}

// Some kernels link it to the function of the netdev that it sits on.
TEST_F(DiscoveryTest, SoftRoceIsNoFunctionOfItsNetdevsNic) {
  sysfs_.AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "ens1f1"));
  tree_.Link(sysfs_.DirectoryOf("rxe0") + "/device",
             tree_.path("sys/bus/pci/devices/0000:3b:00.0"));
  const auto device = discovery_.Device("rxe0");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->function.kind, FunctionKind::kSoft);
  EXPECT_EQ(device->driver, "rdma_rxe");
  EXPECT_EQ(device->pci_address, "");
}

TEST_F(DiscoveryTest, SoftIwarpIsToldByItsNodeType) {
  sysfs_.AddDevice(fakes::SysfsSiw("siw0", "eth0"));
  const SysfsDevice device = Only();
  EXPECT_EQ(device.driver, "siw");
  EXPECT_EQ(device.parent_netdev, "eth0");  // it has no `parent` attribute
  EXPECT_EQ(device.pci_address, "");
}

TEST_F(DiscoveryTest, FunctionWithAnInfinibandAndAnEthernetPort) {
  sysfs_.AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  const SysfsDevice device = Only();
  EXPECT_EQ(device.driver, "mlx5_core");
  EXPECT_EQ(device.provider, queue_memory::Provider::kMlx5);
  EXPECT_EQ(device.pci_address, "0000:3b:00.0");
  EXPECT_EQ(device.vendor_id, "15b3");
  EXPECT_EQ(device.device_id, "1017");
  EXPECT_EQ(device.parent_netdev, "");
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_THAT(device.umads, ElementsAre("umad0", "umad1"));
  EXPECT_THAT(device.issms, ElementsAre("issm0", "issm1"));
  ASSERT_EQ(device.ports.size(), 2u);
  EXPECT_EQ(device.ports[0].link_layer, LinkLayer::kInfiniband);
  EXPECT_EQ(device.ports[0].lid, 0x1a);
  EXPECT_EQ(device.ports[0].rate_mbps, 100000u);
  // No GID names the netdev of an InfiniBand port.
  EXPECT_THAT(device.ports[0].netdevs, ElementsAre("ib0"));
  EXPECT_EQ(device.ports[1].link_layer, LinkLayer::kEthernet);
  EXPECT_THAT(device.ports[1].netdevs, ElementsAre("ens1f1"));
}

TEST_F(DiscoveryTest, VirtualFunction) {
  sysfs_.AddDevice(fakes::SysfsMlx5Vf("mlx5_2", "ens1f0v0"));
  const SysfsDevice device = Only();
  EXPECT_EQ(device.pci_address, "0000:3b:00.2");
  EXPECT_EQ(device.device_id, "1018");
}

TEST_F(DiscoveryTest, SubFunctionHasItsPciParentsAddress) {
  sysfs_.AddDevice(fakes::SysfsMlx5Sf("mlx5_4", "en3f0pf0sf4"));
  const SysfsDevice device = Only();
  EXPECT_EQ(device.pci_address, "0000:3b:00.0");
  EXPECT_EQ(device.vendor_id, "15b3");
  EXPECT_EQ(device.driver, "mlx5_core");
  EXPECT_EQ(device.provider, queue_memory::Provider::kMlx5);
  EXPECT_THAT(device.ports[0].netdevs, ElementsAre("en3f0pf0sf4"));
}

TEST_F(DiscoveryTest, WhatTheBusShowsOfAPhysicalFunction) {
  fakes::SysfsFakeDevice device = fakes::SysfsMlx5TwoPorts("mlx5_0");
  device.acpi_index = "7";
  device.virtual_functions = 4;
  sysfs_.AddDevice(device);
  const Function function = Only().function;
  EXPECT_EQ(function.kind, FunctionKind::kPhysical);
  EXPECT_EQ(function.driver, "mlx5_core");
  EXPECT_EQ(function.pci_class, "020000");
  EXPECT_EQ(function.acpi_index, "7");
  EXPECT_EQ(function.auxiliary, "");
  EXPECT_EQ(function.pf_address, "0000:3b:00.0");
  EXPECT_THAT(function.pf_netdevs, ElementsAre("ens1f1", "ib0"));
  EXPECT_EQ(function.index, -1);
  EXPECT_EQ(function.virtual_functions, 4);
  ASSERT_EQ(function.netdevs.size(), 2u);
  EXPECT_EQ(function.netdevs[0].name, "ens1f1");
  EXPECT_EQ(function.netdevs[0].link_type, "ether");
  EXPECT_EQ(function.netdevs[1].link_type, "infiniband");
  EXPECT_EQ(Only().ports[0].first_pkey, "0xffff");
  EXPECT_EQ(Only().ports[1].first_pkey, "");
  EXPECT_EQ(Only().ports[0].gid_table_length, 8u);
}

TEST_F(DiscoveryTest, WhatTheBusShowsOfAVirtualFunction) {
  sysfs_.AddDevice(fakes::SysfsMlx5VfOf("mlx5_5", 3));
  const Function function = Only().function;
  EXPECT_EQ(function.kind, FunctionKind::kVirtual);
  EXPECT_EQ(function.index, 3);
  EXPECT_EQ(function.pf_address, "0000:3b:00.0");
  EXPECT_THAT(function.pf_netdevs, ElementsAre("ens1f0"));
  EXPECT_EQ(function.virtual_functions, 0);
}

TEST_F(DiscoveryTest, WhatTheBusShowsOfASubFunction) {
  sysfs_.AddDevice(fakes::SysfsMlx5Sf("mlx5_4", "en3f0pf0sf4"));
  const Function function = Only().function;
  EXPECT_EQ(function.kind, FunctionKind::kSub);
  EXPECT_EQ(function.driver, "mlx5_core.sf");
  EXPECT_EQ(function.auxiliary, "mlx5_core.sf.4");
  EXPECT_EQ(function.index, 88);
  EXPECT_EQ(function.pf_address, "0000:3b:00.0");
  EXPECT_THAT(function.pf_netdevs, ElementsAre("ens1f0"));
}

TEST_F(DiscoveryTest, BondsOverADeviceAndTheirSlaves) {
  sysfs_.AddDevice(fakes::SysfsMlx5VfOf("mlx5_5", 0));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "bond0"));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe1", "br0"));
  sysfs_.AddBond("bond0", {"ens1f0v0", "ens2"});
  tree_.Link("sys/class/net/br0/master", "../vrf0");  // no bond
  tree_.Directory("sys/class/net/vrf0");
  const auto devices = discovery_.Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_THAT((*devices)[0].bond_netdevs, ElementsAre("bond0"));
  EXPECT_THAT((*devices)[1].bond_netdevs, ElementsAre("ens1f0v0", "ens2"));
  EXPECT_THAT((*devices)[2].bond_netdevs, IsEmpty());
}

TEST_F(DiscoveryTest, TellsAPodsNetworkNamespaceFromTheNodes) {
  tree_.Directory("sys/class/net/eth0");  // veth
  EXPECT_FALSE(discovery_.SeesFunctionNetdevs());
  sysfs_.AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  EXPECT_TRUE(discovery_.SeesFunctionNetdevs());
}

TEST_F(DiscoveryTest, DeviceWithoutNetdevAndMad) {
  sysfs_.AddDevice(fakes::SysfsEfa("efa_0"));
  const SysfsDevice device = Only();
  EXPECT_EQ(device.driver, "efa");
  EXPECT_EQ(device.provider, queue_memory::Provider::kEfa);
  EXPECT_EQ(device.numa_node, -1);
  EXPECT_EQ(device.ports[0].link_layer, LinkLayer::kUnknown);
  EXPECT_THAT(device.ports[0].netdevs, IsEmpty());
  EXPECT_THAT(device.umads, IsEmpty());
  EXPECT_EQ(device.uverbs, "uverbs0");
}

TEST_F(DiscoveryTest, UverbsMayComeLater) {
  fakes::SysfsFakeDevice loading = fakes::SysfsRxe("rxe0", "eth0");
  loading.uverbs = false;
  sysfs_.AddDevice(loading);
  EXPECT_EQ(Only().uverbs, "");
  sysfs_.AddUverbs("rxe0");
  EXPECT_EQ(Only().uverbs, "uverbs0");
}

TEST_F(DiscoveryTest, TellsTheGidToConnectWith) {
  constexpr const char* kIpv4 = "0000:0000:0000:0000:0000:ffff:0a00:0001";
  constexpr const char* kLinkLocal = "fe80:0000:0000:0000:0000:00ff:fe00:0001";
  fakes::SysfsFakeDevice device = fakes::SysfsRxe("rxe0", "eth0");
  device.ports[0].gids.clear();
  sysfs_.AddDevice(device);
  EXPECT_EQ(Only().ports[0].gid_index, -1);
  // Each is better than those before it.
  int index = 7;
  for (const auto& [gid, type] :
       std::vector<std::pair<const char*, const char*>>{
           {kLinkLocal, "IB/RoCE v1"},
           {kIpv4, "IB/RoCE v1"},
           {kLinkLocal, "RoCE v2"},
           {kIpv4, "RoCE v2"}}) {
    sysfs_.SetGid("rxe0", 1, {index, gid, type, "eth0"});
    EXPECT_EQ(Only().ports[0].gid_index, index) << type << " " << gid;
    --index;
  }
  // Of equals the lowest.
  sysfs_.SetGid("rxe0", 1, {5, kIpv4, "RoCE v2", "eth0"});
  EXPECT_EQ(Only().ports[0].gid_index, 4);
  sysfs_.SetLinkLayer("rxe0", 1, "InfiniBand");
  EXPECT_EQ(Only().ports[0].gid_index, 0);
}

TEST_F(DiscoveryTest, CountsNumaNodes) {
  EXPECT_EQ(discovery_.NumaNodes(), 0);
  tree_.Directory("sys/devices/system/node/node0");
  tree_.Directory("sys/devices/system/node/node1");
  tree_.Write("sys/devices/system/node/online", "0-1");
  EXPECT_EQ(discovery_.NumaNodes(), 2);
}

TEST_F(DiscoveryTest, NetdevsOfManyGidsWithoutRepeats) {
  fakes::SysfsFakeDevice device = fakes::SysfsRxe("rxe0", "eth0");
  device.ports[0].gid_table_length = 300;
  device.ports[0].gids.push_back({200, "x", "RoCE v2", "eth0.100"});
  device.ports[0].gids.push_back({255, "x", "RoCE v2", "eth0"});
  device.ports[0].gids.push_back({256, "x", "RoCE v2", "beyond"});
  sysfs_.AddDevice(device);
  EXPECT_THAT(Only().ports[0].netdevs, ElementsAre("eth0", "eth0.100"));
}

TEST_F(DiscoveryTest, AQuickReadGoesToTheFirstGapAfterWhatIsKnown) {
  fakes::SysfsFakeDevice device = fakes::SysfsRxe("rxe0", "eth0");
  device.ports[0].gid_table_length = 300;
  device.ports[0].gids.push_back({16, "x", "RoCE v2", "eth0.1"});
  device.ports[0].gids.push_back({200, "x", "RoCE v2", "eth0.2"});
  sysfs_.AddDevice(device);
  auto quick = [this](const Discovery::Known& known) {
    const auto devices = discovery_.DevicesQuickly(known);
    EXPECT_TRUE(devices.ok() && devices->size() == 1u) << devices.status();
    return devices->at(0);
  };
  EXPECT_THAT(quick({}).ports[0].netdevs, ElementsAre("eth0", "eth0.1"));
  EXPECT_EQ(quick({}).ports[0].gid_table_length, 300u);
  const SysfsDevice known = Only();
  EXPECT_THAT(known.ports[0].netdevs, ElementsAre("eth0", "eth0.1", "eth0.2"));
  EXPECT_EQ(quick({{"rxe0", &known}}).ports[0].gids, known.ports[0].gids);
  // What is known is read anew; and what comes right after it, too.
  sysfs_.ClearGid("rxe0", 1, 16);
  sysfs_.SetGid("rxe0", 1, {216, "x", "RoCE v2", "eth0.3"});
  EXPECT_THAT(quick({{"rxe0", &known}}).ports[0].netdevs,
              ElementsAre("eth0", "eth0.2", "eth0.3"));
}

TEST_F(DiscoveryTest, TellsHowLongAGidTableIs) {
  for (const int length : {0, 1, 2, 3, 7, 8, 9, 255, 256}) {
    fakes::SysfsFakeDevice device = fakes::SysfsRxe("rxe0", "eth0");
    device.ports[0].gid_table_length = length;
    device.ports[0].gids.clear();
    sysfs_.AddDevice(device);
    EXPECT_EQ(Only().ports[0].gid_table_length, static_cast<uint32_t>(length));
    sysfs_.RemoveDevice("rxe0");
  }
}

TEST_F(DiscoveryTest, ChangesShow) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  sysfs_.SetPortState("rxe0", 1, 1);
  EXPECT_FALSE(Only().ports[0].active());
  EXPECT_EQ(Only().ports[0].port_state, 1);
  EXPECT_EQ(Only().ports[0].phys_state, 3);
  sysfs_.SetLinkLayer("rxe0", 1, "InfiniBand");
  EXPECT_EQ(Only().ports[0].link_layer, LinkLayer::kInfiniband);
  sysfs_.RenameNetdev("eth0", "rdma0");
  EXPECT_EQ(Only().parent_netdev, "rdma0");
  EXPECT_THAT(Only().ports[0].netdevs, ElementsAre("rdma0"));
  sysfs_.RemoveDevice("rxe0");
  EXPECT_THAT(*discovery_.Devices(), IsEmpty());
}

TEST_F(DiscoveryTest, NetdevOfAFunctionIsRenamed) {
  sysfs_.AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  sysfs_.RenameNetdev("ib0", "ibs1");
  EXPECT_THAT(Only().ports[0].netdevs, ElementsAre("ibs1"));
}

TEST_F(DiscoveryTest, DevicesComeByName) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe1", "eth1"));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  const auto devices = discovery_.Devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0].name, "rxe0");
  EXPECT_EQ((*devices)[0].uverbs, "uverbs1");
  EXPECT_EQ((*devices)[1].uverbs, "uverbs0");
}

TEST_F(DiscoveryTest, VanishingDeviceIsLeftOut) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe1", "eth1"));
  // Unplugged between the class being listed and the device being read.
  tree_.Remove(sysfs_.DirectoryOf("rxe0"));
  EXPECT_EQ(Only().name, "rxe1");
  const auto gone = discovery_.Device("rxe0");
  EXPECT_TRUE(absl::IsNotFound(gone.status()));
}

TEST_F(DiscoveryTest, UnreadableClassIsAnErrorNotNoDevices) {
  tree_.Write("sys/class/infiniband", "");
  const auto devices = discovery_.Devices();
  ASSERT_FALSE(devices.ok());
  EXPECT_THAT(std::string(devices.status().message()),
              HasSubstr("class/infiniband"));
}

TEST_F(DiscoveryTest, UnreadableUverbsClassIsAnError) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  tree_.Remove("sys/class/infiniband_verbs");
  tree_.Write("sys/class/infiniband_verbs", "");
  EXPECT_FALSE(discovery_.Devices().ok());
  EXPECT_FALSE(discovery_.Device("rxe0").ok());
}

TEST_F(DiscoveryTest, UnreadablePortsAreAnError) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  tree_.Remove(sysfs_.DirectoryOf("rxe0") + "/ports");
  tree_.Write(sysfs_.DirectoryOf("rxe0") + "/ports", "");
  EXPECT_FALSE(discovery_.Devices().ok());
  const auto device = discovery_.Device("rxe0");
  EXPECT_FALSE(device.ok());
  EXPECT_FALSE(absl::IsNotFound(device.status()));
}

TEST_F(DiscoveryTest, PortWhoseStateCannotBeReadIsNotActive) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  const std::string state = sysfs_.DirectoryOf("rxe0") + "/ports/1/state";
  tree_.Remove(state);
  tree_.Directory(state);  // reading fails, as with EIO from dead firmware
  EXPECT_EQ(Only().ports[0].port_state, 0);
  EXPECT_FALSE(Only().ports[0].active());
}

TEST_F(DiscoveryTest, SingleDevice) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  const auto device = discovery_.Device("rxe0");
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device->uverbs, "uverbs0");
  const auto missing = discovery_.Device("mlx5_9");
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("mlx5_9"));
}

TEST_F(DiscoveryTest, FingerprintsTellWhatHealthDependsOn) {
  std::vector<std::string> seen = {discovery_.Fingerprint()};
  auto is_new = [&] {
    seen.push_back(discovery_.Fingerprint());
    EXPECT_EQ(discovery_.Fingerprint(), seen.back()) << "nothing changed";
    return std::find(seen.begin(), seen.end() - 1, seen.back()) ==
           seen.end() - 1;
  };
  fakes::SysfsFakeDevice loading = fakes::SysfsRxe("rxe0", "eth0");
  loading.uverbs = false;
  sysfs_.AddDevice(loading);
  EXPECT_TRUE(is_new());
  sysfs_.AddUverbs("rxe0");
  EXPECT_TRUE(is_new());
  sysfs_.SetPortState("rxe0", 1, 1);
  EXPECT_TRUE(is_new());
  sysfs_.SetLinkLayer("rxe0", 1, "InfiniBand");
  EXPECT_TRUE(is_new());
  sysfs_.RenameNetdev("eth0", "eth1");
  EXPECT_TRUE(is_new());
  for (const char* attribute : {"phys_state", "lid"}) {
    tree_.Write(sysfs_.DirectoryOf("rxe0") + "/ports/1/" + attribute, "6\n");
    EXPECT_TRUE(is_new()) << attribute;
  }
  const std::filesystem::path node = tree_.path("dev/infiniband/uverbs0");
  std::filesystem::remove(node);
  EXPECT_TRUE(is_new());
  tree_.Write("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe1\n");
  EXPECT_TRUE(is_new());
  sysfs_.RemoveDevice("rxe0");
  EXPECT_TRUE(is_new());
  // An InfiniBand port's GID names no interface.
  sysfs_.AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  EXPECT_TRUE(is_new());
  sysfs_.RenameNetdev("ib0", "ib7");
  EXPECT_TRUE(is_new());
}

TEST_F(DiscoveryTest, RdmaCm) {
  EXPECT_FALSE(discovery_.HasRdmaCm());
  sysfs_.AddRdmaCm();
  EXPECT_TRUE(discovery_.HasRdmaCm());
}

TEST_F(DiscoveryTest, LinkLayerNames) {
  EXPECT_STREQ(LinkLayerName(LinkLayer::kInfiniband), "InfiniBand");
  EXPECT_STREQ(LinkLayerName(LinkLayer::kEthernet), "Ethernet");
  EXPECT_STREQ(LinkLayerName(LinkLayer::kUnknown), "unknown");
}

}  // namespace
}  // namespace purser::rdma
