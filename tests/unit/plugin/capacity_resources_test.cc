// SPDX-License-Identifier: Apache-2.0
//
// Resources whose units are devices or queue pairs.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "plugin/config/unit_limit.h"
#include "plugin/device_access.h"
#include "plugin/device_resource.h"
#include "plugin/pool_resource.h"
#include "plugin/queue_memory_resource.h"
#include "plugin/queue_pair_resource.h"

namespace purser::plugin {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Device MakeDevice(const std::string& name, int minor) {
  Device device;
  device.sysfs.name = name;
  device.sysfs.uverbs = "uverbs" + std::to_string(minor);
  return device;
}

// Three devices that "rdma/hca" has, and one that no pool has.
Snapshot Node() {
  Snapshot node;
  node.devices = {MakeDevice("mlx5_2", 0), MakeDevice("mlx5_sf", 1),
                  MakeDevice("rxe0", 2), MakeDevice("spare", 3)};
  node.devices[0].sysfs.pci_address = "0000:3b:00.2";
  node.devices[1].sysfs.pci_address = "0000:3b:00.0";
  node.devices[1].sysfs.function.auxiliary = "mlx5_core.sf.4";
  node.devices[1].sysfs.function.index = 88;
  node.pools["rdma/hca"] = {0, 1, 2};
  return node;
}

PoolConfig PerDevice() {
  PoolConfig config;
  config.unit = PoolUnit::kDevice;
  return config;
}

TEST(DeviceResource, AUnitIsADeviceByItsPlaceOnTheBus) {
  Snapshot node = Node();
  node.devices[2].health = DeviceHealth::kPortDown;
  node.devices[2].reason = "no port is ACTIVE";
  const Advertisement advertisement =
      DeviceResource(PerDevice()).Advertise(node);
  EXPECT_THAT(advertisement.ranges, IsEmpty());
  EXPECT_THAT(advertisement.named,
              ElementsAre(NamedUnit{.id = "0000:3b:00.2"},
                          NamedUnit{.id = "0000:3b:00.0.sf88"},
                          NamedUnit{.id = "rxe0",
                                    .healthy = false,
                                    .reason = "rxe0: no port is ACTIVE"}));
  EXPECT_EQ(advertisement.capacity(), 3u);
  EXPECT_EQ(advertisement.allocatable(), 2u);
}

TEST(DeviceResource, AllocateHandsOutThatDeviceAlone) {
  const std::vector<std::string> ids = {"0000:3b:00.0.sf88"};
  const auto response = DeviceResource(PerDevice()).Allocate(ids, Node());
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(response->devices_size(), 1);
  EXPECT_EQ(response->devices(0).host_path(), "/dev/infiniband/uverbs1");
  EXPECT_THAT(response->envs(),
              UnorderedElementsAre(Pair("PURSER_POOL_HCA_DEVICES", "mlx5_sf")));
}

// The kernel gives names on the auxiliary bus anew at every boot.
TEST(DeviceResource, ASubFunctionsIdIsOfTheNumberItWasMadeWith) {
  rdma::SysfsDevice device = Node().devices[1].sysfs;
  EXPECT_EQ(StableName(device), "0000:3b:00.0.sf88");
  device.function.auxiliary = "mlx5_core.sf.7";
  EXPECT_EQ(StableName(device), "0000:3b:00.0.sf88");
  EXPECT_TRUE(IsCdiName(StableName(device)));
  PoolConfig pool = PerDevice();
  EXPECT_EQ(UnitId(pool, device), "0000:3b:00.0.sf88");
  pool.reach = Reach::kSriovAuxNetDevice;  // as that plugin does
  EXPECT_EQ(UnitId(pool, device), "mlx5_core.sf.7");
  device.function.index = -1;
  EXPECT_EQ(StableName(device), "mlx5_core.sf.7");
}

TEST(DeviceResource, PoolsOfTheSriovPluginHaveItsVariableToo) {
  PoolConfig config = PerDevice();
  config.reach = Reach::kSriovNetDevice;
  config.resource_prefix = "rdma";
  const std::vector<std::string> ids = {"rxe0", "0000:3b:00.2"};
  const auto response = DeviceResource(config).Allocate(ids, Node());
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(
      response->envs(),
      UnorderedElementsAre(Pair("PURSER_POOL_HCA_DEVICES", "mlx5_2,rxe0"),
                           Pair("PCIDEVICE_RDMA_HCA", "0000:3b:00.2,rxe0"),
                           Pair("PCIDEVICE_RDMA_HCA_INFO", _)));
}

TEST(DeviceResource, PoolsOfTheSriovPluginTellWhatItTellsOfEachDevice) {
  PoolConfig config = PerDevice();
  config.reach = Reach::kSriovNetDevice;
  config.additional_info = {{"*", {{"token", "all"}, {"zone", "a"}}},
                            {"rxe0", {{"token", "\"own\""}}}};
  Snapshot node = Node();
  node.rdma_cm = true;
  const std::vector<std::string> ids = {"rxe0", "0000:3b:00.2"};
  const auto response = DeviceResource(config).Allocate(ids, node);
  ASSERT_TRUE(response.ok());
  google::protobuf::Struct info;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(
                  response->envs().at("PCIDEVICE_RDMA_HCA_INFO"), &info)
                  .ok());
  auto of = [&](const char* device, const char* provider, const char* key) {
    const auto& providers = info.fields().at(device).struct_value().fields();
    const auto& values = providers.at(provider).struct_value().fields();
    return values.contains(key) ? values.at(key).string_value() : "none";
  };
  EXPECT_EQ(of("rxe0", "generic", "deviceID"), "rxe0");
  EXPECT_EQ(of("rxe0", "extra", "token"), "\"own\"");
  EXPECT_EQ(of("rxe0", "extra", "zone"), "a");
  EXPECT_EQ(of("0000:3b:00.2", "extra", "token"), "all");
  EXPECT_EQ(of("0000:3b:00.2", "generic", "deviceID"), "0000:3b:00.2");
  EXPECT_EQ(of("0000:3b:00.2", "rdma", "rdma_dev"), "mlx5_2");
  EXPECT_EQ(of("0000:3b:00.2", "rdma", "uverbs"), "/dev/infiniband/uverbs0");
  EXPECT_EQ(of("0000:3b:00.2", "rdma", "rdma_cm"), "/dev/infiniband/rdma_cm");
  EXPECT_EQ(of("0000:3b:00.2", "rdma", "issm"), "none");
}

TEST(DeviceResource, SaysWhyThereIsNone) {
  Snapshot node = Node();
  EXPECT_EQ(DeviceResource(PerDevice()).Note(node), "");
  node.pools["rdma/hca"].clear();
  EXPECT_THAT(DeviceResource(PerDevice()).Note(node),
              HasSubstr("none of this node's RDMA devices (mlx5_2,"));
  EXPECT_EQ(DeviceResource(PerDevice()).Note({}),
            "no usable RDMA device on this node");
}

rdma::PortStatus Port(rdma::LinkLayer link_layer, uint32_t gids) {
  rdma::PortStatus port;
  port.link_layer = link_layer;
  port.gid_table_length = gids;
  return port;
}

TEST(SharesOfGidTables, HalfOfTheSmallestButForTheNodesOwn) {
  Device roce = MakeDevice("mlx5_0", 0), large = MakeDevice("rxe0", 1),
         infiniband = MakeDevice("mlx5_1", 2);
  roce.sysfs.ports = {Port(rdma::LinkLayer::kEthernet, 128)};
  large.sysfs.ports = {Port(rdma::LinkLayer::kEthernet, 1024)};
  infiniband.sysfs.ports = {Port(rdma::LinkLayer::kInfiniband, 8)};
  EXPECT_EQ(SharesOfGidTables({&roce}), 63u);
  EXPECT_EQ(SharesOfGidTables({&large}), 511u);
  EXPECT_EQ(SharesOfGidTables({&large, &roce, &infiniband}), 63u);
  EXPECT_EQ(SharesOfGidTables({&infiniband}), PoolConfig::kDefaultShares);
  roce.sysfs.ports[0].gid_table_length = 1;
  EXPECT_EQ(SharesOfGidTables({&roce}), 1u);
}

TEST(PoolResource, SharesCanComeFromTheGidTables) {
  Snapshot node = Node();
  node.devices[0].sysfs.ports = {Port(rdma::LinkLayer::kEthernet, 256)};
  PoolConfig config;
  config.rdma_hca_max.reset();
  EXPECT_EQ(PoolResource(config).Advertise(node).capacity(), 127u);
  EXPECT_EQ(PoolResource(config).Advertise({}).capacity(), 0u);
}

TEST(QueueMemoryResource, ALargerUnitIsAnotherResource) {
  const QueueMemoryResource memory(100, 16);
  EXPECT_EQ(memory.name(), "rdma/wqe-16mib");
  EXPECT_EQ(memory.Advertise(Node()).capacity(), 100u);
  EXPECT_EQ(memory.Note(Node()), "");
  EXPECT_EQ(memory.Note({}), "no usable RDMA device on this node");
  const std::vector<std::string> ids = {"0", "1", "2"};
  EXPECT_EQ(
      memory.Allocate(ids, Node())->envs().at("PURSER_QUEUE_MEMORY_BYTES"),
      std::to_string(3 * 16 * 1024 * 1024));
}

TEST(QueuePairResource, TheDevicesOwnNumbersLessTheReserve) {
  Snapshot node = Node();
  node.devices[0].max_qp = 1000;
  node.devices[1].max_qp = 500;
  node.devices[2].max_qp = 64;
  node.devices[3].max_qp = 9999;  // in no pool
  const QueuePairResource pairs({.enabled = true, .reserve = 64});
  EXPECT_EQ(pairs.name(), "rdma/qp");
  EXPECT_EQ(pairs.Advertise(node).capacity(), 1500u);
  EXPECT_EQ(pairs.Advertise(node).allocatable(), 1500u);
  EXPECT_EQ(pairs.Note(node), "");
}

TEST(QueuePairResource, WithoutPoolsAllDevicesCount) {
  Snapshot node = Node();
  node.pools.clear();
  for (Device& device : node.devices) device.max_qp = 100;
  node.devices[0].health = DeviceHealth::kIncomplete;
  const QueuePairResource pairs({.enabled = true, .reserve = 0});
  EXPECT_EQ(pairs.Advertise(node).capacity(), 300u);
}

TEST(QueuePairResource, WhatADeviceDoesNotTellTheConfigurationTells) {
  Snapshot node = Node();
  node.devices[0].max_qp = 1000;
  node.devices[1].max_qp_unknown = "not permitted";
  node.devices[2].max_qp_unknown = "not permitted";
  EXPECT_EQ(
      QueuePairResource({.enabled = true, .per_device = 100, .reserve = 0})
          .Advertise(node)
          .capacity(),
      1200u);
  const QueuePairResource silent({.enabled = true, .reserve = 0});
  EXPECT_EQ(silent.Advertise(node).capacity(), 1000u);
  EXPECT_THAT(silent.Note(node),
              HasSubstr("max_qp is not known: mlx5_sf (not permitted), rxe0 "
                        "(not permitted); let the plugin open devices, or set "
                        "resources.queuePairs.perDevice"));
  const QueuePairResource given(
      {.enabled = true, .capacity = 320, .reserve = 0, .unit = 64});
  EXPECT_EQ(given.name(), "rdma/qp-64");
  EXPECT_EQ(given.Advertise(node).capacity(), 5u);
  EXPECT_EQ(given.Advertise({}).capacity(), 0u);
  EXPECT_EQ(given.Note({}), "no usable RDMA device on this node");
}

TEST(QueuePairResource, MoreThanTheKubeletTakesIsCutAndSaid) {
  Snapshot node = Node();
  for (Device& device : node.devices) device.max_qp = 262'144;
  const QueuePairResource pairs({.enabled = true, .reserve = 0});
  EXPECT_EQ(pairs.Advertise(node).capacity(), LargestUnitCount());
  EXPECT_THAT(pairs.Note(node), HasSubstr("set unit: 4"));
  const QueuePairResource coarser({.enabled = true, .reserve = 0, .unit = 4});
  EXPECT_EQ(coarser.Advertise(node).capacity(), 196'608u);
  EXPECT_EQ(coarser.Note(node), "");
  // The devices' own figures are cut, the configuration's is refused.
  EXPECT_TRUE(absl::IsOutOfRange(pairs.Fits(node)));
  EXPECT_TRUE(coarser.Fits(node).ok());
  for (Device& device : node.devices) device.max_qp.reset();
  const QueuePairResource asked(
      {.enabled = true, .per_device = 262'144, .reserve = 0});
  EXPECT_TRUE(absl::IsInvalidArgument(asked.Fits(node)));
  EXPECT_EQ(asked.Advertise(node).capacity(), LargestUnitCount());
  EXPECT_TRUE(asked.Fits({}).ok());
}

TEST(QueuePairResource, LessThanAUnitIsNoneAndSaid) {
  Snapshot node = Node();
  for (Device& device : node.devices) device.max_qp = 10;
  const QueuePairResource pairs({.enabled = true, .reserve = 30});
  EXPECT_EQ(pairs.Advertise(node).capacity(), 0u);
  EXPECT_THAT(pairs.Note(node), HasSubstr("less 30 in reserve"));
}

TEST(QueuePairResource, AllocateSetsTheBudget) {
  const std::vector<std::string> ids = {"7", "8", "9"};
  const auto response =
      QueuePairResource({.enabled = true, .unit = 64}).Allocate(ids, Node());
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->envs(),
              UnorderedElementsAre(Pair("PURSER_QUEUE_PAIRS", "192")));
  EXPECT_EQ(response->devices_size(), 0);
}

}  // namespace
}  // namespace purser::plugin
