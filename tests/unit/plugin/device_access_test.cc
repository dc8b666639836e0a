// SPDX-License-Identifier: Apache-2.0
//
// What containers are given of devices, and where the kubelet is told they are.
#include "plugin/device_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/config/unit_limit.h"
#include "plugin/device_resource.h"
#include "plugin/pool_resource.h"
#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

using rdma::LinkLayer;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

rdma::PortStatus Port(LinkLayer link_layer, int gid_index) {
  rdma::PortStatus port;
  port.port_num = 1;
  port.port_state = 4;
  port.link_layer = link_layer;
  port.gid_index = gid_index;
  return port;
}

// A device with all its nodes.
Device MakeDevice(int number, LinkLayer link_layer, int numa_node) {
  Device device;
  device.sysfs.name = fmt::format("mlx5_{}", number);
  device.sysfs.pci_address = fmt::format("0000:3b:00.{}", number);
  device.sysfs.numa_node = numa_node;
  device.sysfs.ports = {Port(link_layer, 3)};
  device.sysfs.uverbs = fmt::format("uverbs{}", number);
  device.sysfs.umads = {fmt::format("umad{}", number)};
  device.sysfs.issms = {fmt::format("issm{}", number)};
  return device;
}

Snapshot Node(std::vector<Device> devices, int numa_nodes = 2) {
  Snapshot node;
  node.devices = std::move(devices);
  node.rdma_cm = true;
  node.numa_nodes = numa_nodes;
  for (size_t i = 0; i < node.devices.size(); ++i)
    node.pools["rdma/hca"].push_back(i);
  return node;
}

// Two of NUMA node 0 and one of node 1.
Snapshot ThreeHcas() {
  return Node({MakeDevice(0, LinkLayer::kEthernet, 0),
               MakeDevice(1, LinkLayer::kEthernet, 0),
               MakeDevice(2, LinkLayer::kEthernet, 1)});
}

PoolConfig Pool(PoolUnit unit, uint32_t shares = 4) {
  PoolConfig config;
  config.unit = unit;
  config.rdma_hca_max = shares;
  config.rdma_hca_max_given = true;
  return config;
}

std::vector<std::string> Paths(
    const v1beta1::ContainerAllocateResponse& response) {
  std::vector<std::string> paths;
  for (const v1beta1::DeviceSpec& spec : response.devices()) {
    EXPECT_EQ(spec.permissions(), "rw");  // and no node may be made
    paths.push_back(spec.container_path());
  }
  return paths;
}

v1beta1::ContainerAllocateResponse Grant(const PoolConfig& pool,
                                         const Snapshot& node,
                                         const CdiSpecs* cdi = nullptr) {
  v1beta1::ContainerAllocateResponse response;
  GrantAccess(pool, node.members("rdma/hca"), node, cdi, &response);
  return response;
}

TEST(DeviceAccess, GivesTheNodesThatAreWantedAndOfUse) {
  const Snapshot infiniband = Node({MakeDevice(0, LinkLayer::kInfiniband, 0)});
  const Snapshot ethernet = Node({MakeDevice(0, LinkLayer::kEthernet, 0)});
  PoolConfig pool;
  EXPECT_THAT(Paths(Grant(pool, infiniband)),
              ElementsAre("/dev/infiniband/uverbs0", "/dev/infiniband/umad0",
                          "/dev/infiniband/rdma_cm"));
  pool.allocate.issm = true;
  EXPECT_THAT(Paths(Grant(pool, infiniband)),
              Contains("/dev/infiniband/issm0"));
  // There is no subnet manager on Ethernet.
  EXPECT_THAT(Paths(Grant(pool, ethernet)),
              Not(Contains("/dev/infiniband/issm0")));
  pool.allocate = {.umad = false, .rdma_cm = false};
  EXPECT_THAT(Paths(Grant(pool, infiniband)),
              ElementsAre("/dev/infiniband/uverbs0"));
}

TEST(DeviceAccess, EfaHasNoConnectionManager) {
  Device efa = MakeDevice(0, LinkLayer::kEthernet, 0);
  efa.sysfs.provider = queue_memory::Provider::kEfa;
  efa.sysfs.umads.clear();
  EXPECT_THAT(Paths(Grant({}, Node({efa}))),
              ElementsAre("/dev/infiniband/uverbs0"));
  EXPECT_THAT(
      Paths(Grant({}, Node({efa, MakeDevice(1, LinkLayer::kEthernet, 0)}))),
      Contains("/dev/infiniband/rdma_cm"));
}

TEST(DeviceAccess, TellsTheGidToConnectWith) {
  Snapshot node = ThreeHcas();
  node.devices[1].sysfs.ports = {Port(LinkLayer::kInfiniband, 0)};
  node.devices[2].sysfs.ports = {Port(LinkLayer::kEthernet, -1)};
  EXPECT_THAT(Grant({}, node).envs(), Contains(Pair("PURSER_POOL_HCA_GID_INDEX",
                                                    "mlx5_0:1=3,mlx5_1:1=0")));
  for (Device& device : node.devices) device.sysfs.ports[0].gid_index = -1;
  EXPECT_THAT(Grant({}, node).envs(), SizeIs(1));
}

TEST(DeviceAccess, NamesDevicesWhereTheRuntimeKnowsThem) {
  const fakes::FileTree tree;
  const Snapshot node = ThreeHcas();
  Config config;
  CdiSpecs cdi(tree.path("cdi"), "purser");
  const auto before = Grant(config.pools[0], node, &cdi);
  EXPECT_THAT(before.cdi_devices(), IsEmpty());
  EXPECT_EQ(before.devices_size(), 7);
  const std::vector<CdiSpec> specs = PoolCdiSpecs(config, node);
  ASSERT_THAT(specs, SizeIs(1));
  EXPECT_EQ(specs[0].resource, "rdma/hca");
  ASSERT_THAT(specs[0].devices, SizeIs(3));
  EXPECT_EQ(specs[0].devices[1],
            (CdiDevice{"0000:3b:00.1",
                       {"/dev/infiniband/uverbs1", "/dev/infiniband/umad1"}}));
  EXPECT_THAT(specs[0].shared_nodes, ElementsAre("/dev/infiniband/rdma_cm"));
  cdi.Refresh(specs);
  const auto response = Grant(config.pools[0], node, &cdi);
  EXPECT_THAT(response.devices(), IsEmpty());
  ASSERT_EQ(response.cdi_devices_size(), 3);
  EXPECT_EQ(response.cdi_devices(1).name(), "purser.dev/rdma_hca=0000:3b:00.1");
  EXPECT_THAT(response.envs(), Contains(Pair("PURSER_POOL_HCA_DEVICES",
                                             "mlx5_0,mlx5_1,mlx5_2")));
}

TEST(DeviceAccess, NodesWhereADevicesNameIsNoneOfCdi) {
  const fakes::FileTree tree;
  Device strange = MakeDevice(0, LinkLayer::kEthernet, 0);
  strange.sysfs.pci_address.clear();
  strange.sysfs.name = "my rxe";
  const Snapshot node = Node({strange, MakeDevice(1, LinkLayer::kEthernet, 0)});
  Config config;
  CdiSpecs cdi(tree.path("cdi"), "purser");
  cdi.Refresh(PoolCdiSpecs(config, node));
  ASSERT_TRUE(cdi.InPlace("rdma/hca"));
  EXPECT_EQ(Grant(config.pools[0], node, &cdi).devices_size(), 5);
}

TEST(Topology, IsToldWhereItIsKnownAndOne) {
  const Snapshot node = ThreeHcas();
  EXPECT_EQ(DeviceResource(Pool(PoolUnit::kDevice))
                .Advertise(node)
                .named[2]
                .numa_node,
            1);
  EXPECT_EQ(DeviceResource(Pool(PoolUnit::kDeviceShare))
                .Advertise(node)
                .ranges[2]
                .numa_node,
            1);
  // A share of all of them is of no node.
  EXPECT_EQ(PoolResource({}).Advertise(node).ranges[0].numa_node, -1);
  const Snapshot one = Node({MakeDevice(0, LinkLayer::kEthernet, 1),
                             MakeDevice(1, LinkLayer::kEthernet, 1)});
  EXPECT_EQ(PoolResource({}).Advertise(one).ranges[0].numa_node, 1);
  PoolConfig without;
  without.allocate.topology = false;
  EXPECT_EQ(PoolResource(without).Advertise(one).ranges[0].numa_node, -1);
  const Snapshot unknown = Node({MakeDevice(0, LinkLayer::kEthernet, -1)});
  EXPECT_EQ(PoolResource({}).Advertise(unknown).ranges[0].numa_node, -1);
}

// The kubelet looks at each unit for each of 2^n sets of NUMA nodes.
TEST(Topology, IsNotToldOfThousandsOfUnitsOrOnAMachineOfManyNodes) {
  const std::vector<Device> devices = {MakeDevice(0, LinkLayer::kEthernet, 1)};
  PoolConfig pool;
  pool.rdma_hca_max = 1024;
  EXPECT_EQ(PoolResource(pool).Advertise(Node(devices)).ranges[0].numa_node, 1);
  pool.rdma_hca_max = 1025;
  EXPECT_EQ(PoolResource(pool).Advertise(Node(devices)).ranges[0].numa_node,
            -1);
  pool.rdma_hca_max = 10;
  EXPECT_EQ(PoolResource(pool).Advertise(Node(devices, 8)).ranges[0].numa_node,
            1);
  EXPECT_EQ(PoolResource(pool).Advertise(Node(devices, 34)).ranges[0].numa_node,
            -1);
  // All units of a resource count.
  const Snapshot three = ThreeHcas();
  EXPECT_EQ(DeviceResource(Pool(PoolUnit::kDeviceShare, 400))
                .Advertise(three)
                .ranges[0]
                .numa_node,
            -1);
}

TEST(DeviceShares, AreOfOneDeviceEach) {
  Snapshot node = ThreeHcas();
  node.devices[1].health = DeviceHealth::kPortDown;
  node.devices[1].reason = "no port is ACTIVE";
  const DeviceResource shares(Pool(PoolUnit::kDeviceShare));
  const Advertisement advertisement = shares.Advertise(node);
  EXPECT_EQ(advertisement.capacity(), 12u);
  EXPECT_EQ(advertisement.allocatable(), 8u);
  EXPECT_EQ(advertisement.ranges[1].prefix, "0000:3b:00.1-");
  EXPECT_EQ(advertisement.ranges[1].reason, "mlx5_1: no port is ACTIVE");
  EXPECT_TRUE(
      CheckUnits(advertisement,
                 std::vector<std::string>{"0000:3b:00.0-3", "0000:3b:00.2-0"})
          .ok());
  for (const char* bad : {"0000:3b:00.0-4", "0000:3b:00.0-", "0000:3b:00.0",
                          "0000:3b:00.3-0", "0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        CheckUnits(advertisement, std::vector<std::string>{bad})))
        << bad;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CheckUnits(advertisement, std::vector<std::string>{"0000:3b:00.1-0"})));
}

TEST(DeviceShares, GiveTheirDeviceAndNoOther) {
  const std::vector<std::string> ids = {"0000:3b:00.2-0", "0000:3b:00.2-3"};
  const auto response =
      DeviceResource(Pool(PoolUnit::kDeviceShare)).Allocate(ids, ThreeHcas());
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(Paths(*response),
              ElementsAre("/dev/infiniband/uverbs2", "/dev/infiniband/umad2",
                          "/dev/infiniband/rdma_cm"));
  EXPECT_THAT(response->envs(),
              Contains(Pair("PURSER_POOL_HCA_DEVICES", "mlx5_2")));
}

TEST(DeviceShares, AreCutToWhatTheKubeletTakes) {
  const DeviceResource shares(Pool(PoolUnit::kDeviceShare, 100'000));
  Snapshot node = ThreeHcas();
  for (Device& device : node.devices) device.health = DeviceHealth::kPortDown;
  const Advertisement advertisement = shares.Advertise(node);
  EXPECT_LE(SerializeListAndWatch(advertisement).size(),
            kKubeletMaxMessageBytes);
  EXPECT_GT(advertisement.capacity(), 80'000u);
  EXPECT_THAT(shares.Note(node),
              HasSubstr("the largest rdmaHcaMax that fits is 3"));
  EXPECT_EQ(DeviceResource(Pool(PoolUnit::kDeviceShare)).Note(node), "");
  // Where the configuration is read, its own figure is refused; what the node
  // itself has too many of is not.
  EXPECT_TRUE(absl::IsInvalidArgument(shares.Fits(node)));
  EXPECT_TRUE(DeviceResource(Pool(PoolUnit::kDevice)).Fits(node).ok());
  EXPECT_TRUE(shares.Fits({}).ok());
  PoolConfig by_tables = Pool(PoolUnit::kDeviceShare);
  by_tables.rdma_hca_max.reset();
  by_tables.rdma_hca_max_given = false;
  for (Device& device : node.devices) {
    device.sysfs.ports.resize(1);
    device.sysfs.ports[0].link_layer = rdma::LinkLayer::kEthernet;
    device.sysfs.ports[0].gid_table_length = 200'000;
  }
  EXPECT_TRUE(absl::IsOutOfRange(DeviceResource(by_tables).Fits(node)));
  EXPECT_EQ(DeviceResource(by_tables).Advertise(node).capacity(),
            advertisement.capacity());
}

// The number that is the default, too.
TEST(DeviceShares, OnlyWhatNobodyAskedForIsCut) {
  std::vector<Device> devices;
  for (int i = 0; i < 200; ++i)
    devices.push_back(MakeDevice(i, LinkLayer::kEthernet, 0));
  const Snapshot node = Node(devices);
  PoolConfig pool = Pool(PoolUnit::kDeviceShare, PoolConfig::kDefaultShares);
  EXPECT_TRUE(absl::IsInvalidArgument(DeviceResource(pool).Fits(node)));
  pool.rdma_hca_max_given = false;
  EXPECT_TRUE(absl::IsOutOfRange(DeviceResource(pool).Fits(node)));
}

TEST(DeviceShares, OfOneContainerAreOfOneHca) {
  const DeviceResource shares(Pool(PoolUnit::kDeviceShare));
  const Snapshot node = ThreeHcas();
  const std::vector<std::string> available = {
      "0000:3b:00.0-1", "0000:3b:00.1-0", "0000:3b:00.1-1",
      "0000:3b:00.1-2", "0000:3b:00.2-0", "unknown"};
  EXPECT_TRUE(shares.has_preference());
  EXPECT_THAT(shares.Prefer(available, {}, 2, node),
              ElementsAre("0000:3b:00.1-0", "0000:3b:00.1-1"));
  const std::vector<std::string> must = {"0000:3b:00.0-1"};
  EXPECT_THAT(shares.Prefer(available, must, 1, node),
              ElementsAre("0000:3b:00.0-1"));
  // With a second one of the same NUMA node.
  EXPECT_THAT(shares.Prefer(available, must, 2, node),
              ElementsAre("0000:3b:00.0-1", "0000:3b:00.1-0"));
}

TEST(WholeDevices, OfOneContainerAreOfManyFunctionsOrOfFew) {
  Snapshot node;
  for (int i = 0; i < 4; ++i) {
    node.devices.push_back(MakeDevice(i, LinkLayer::kEthernet, 0));
    node.devices.back().sysfs.function.pf_address =
        i < 2 ? "0000:3a:00.0" : "0000:3a:00.1";
    node.pools["rdma/hca"].push_back(static_cast<size_t>(i));
  }
  const std::vector<std::string> available = {"0000:3b:00.0", "0000:3b:00.1",
                                              "0000:3b:00.2", "0000:3b:00.3"};
  PoolConfig pool = Pool(PoolUnit::kDevice);
  EXPECT_THAT(DeviceResource(pool).Prefer(available, {}, 2, node),
              ElementsAre("0000:3b:00.0", "0000:3b:00.2"));
  pool.allocate.placement = Placement::kPacked;
  EXPECT_THAT(DeviceResource(pool).Prefer(available, {}, 2, node),
              ElementsAre("0000:3b:00.0", "0000:3b:00.1"));
  EXPECT_FALSE(PoolResource({}).has_preference());
}

}  // namespace
}  // namespace purser::plugin
