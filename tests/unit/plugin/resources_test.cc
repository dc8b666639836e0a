// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/pool_resource.h"
#include "plugin/queue_memory_resource.h"

namespace purser::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Device MakeDevice(const std::string& name, int minor, DeviceHealth health) {
  Device device;
  device.sysfs.name = name;
  if (health != DeviceHealth::kIncomplete)
    device.sysfs.uverbs = fmt::format("uverbs{}", minor);
  device.sysfs.umads = {fmt::format("umad{}", minor)};
  device.sysfs.issms = {fmt::format("issm{}", minor)};
  device.health = health;
  if (health != DeviceHealth::kHealthy) device.reason = "of some reason";
  return device;
}

Snapshot Node(std::vector<Device> devices) {
  Snapshot snapshot;
  snapshot.devices = std::move(devices);
  snapshot.rdma_cm = true;
  std::vector<size_t>& members = snapshot.pools["rdma/hca"];
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (snapshot.devices[i].health != DeviceHealth::kIncomplete)
      members.push_back(i);
  }
  return snapshot;
}

std::vector<std::string> DevicePaths(
    const v1beta1::ContainerAllocateResponse& response) {
  std::vector<std::string> paths;
  for (const v1beta1::DeviceSpec& spec : response.devices()) {
    EXPECT_EQ(spec.permissions(), "rw");
    EXPECT_EQ(spec.host_path(), spec.container_path());
    paths.push_back(spec.host_path());
  }
  return paths;
}

TEST(PoolResource, AdvertisesItsSharesWhileThePoolHasADevice) {
  const PoolResource pool{PoolConfig{}};
  EXPECT_EQ(pool.name(), "rdma/hca");
  EXPECT_EQ(pool.Advertise(Node({})).capacity(), 0u);
  const Advertisement advertisement =
      pool.Advertise(Node({MakeDevice("rxe0", 0, DeviceHealth::kHealthy)}));
  EXPECT_EQ(advertisement.capacity(), 1000u);
  EXPECT_EQ(advertisement.allocatable(), 1000u);
  EXPECT_EQ(
      pool.Advertise(Node({MakeDevice("rxe0", 0, DeviceHealth::kIncomplete)}))
          .capacity(),
      0u);
}

TEST(PoolResource, IsUnhealthyOnlyWhenAllItsDevicesAre) {
  const PoolResource pool{PoolConfig{}};
  const Device up = MakeDevice("rxe0", 0, DeviceHealth::kHealthy);
  const Device down = MakeDevice("rxe1", 1, DeviceHealth::kPortDown);
  EXPECT_EQ(pool.Advertise(Node({up, down})).allocatable(), 1000u);
  const Advertisement all_down = pool.Advertise(Node({down}));
  EXPECT_EQ(all_down.capacity(), 1000u);
  EXPECT_EQ(all_down.allocatable(), 0u);
  EXPECT_THAT(all_down.ranges[0].reason, HasSubstr("rxe1: of some reason"));
}

TEST(PoolResource, ZeroSharesAreNoUnits) {
  PoolConfig config;
  config.rdma_hca_max = 0;
  EXPECT_EQ(
      PoolResource(config)
          .Advertise(Node({MakeDevice("rxe0", 0, DeviceHealth::kHealthy)}))
          .capacity(),
      0u);
}

TEST(PoolResource, AllocateHandsOutItsDevicesAndNoOthers) {
  PoolConfig config;
  config.mounts = {{"/opt/host", "/opt/container", true}};
  const PoolResource pool(config);
  Snapshot node = Node({MakeDevice("mlx5_0", 0, DeviceHealth::kPortDown),
                        MakeDevice("mlx5_1", 1, DeviceHealth::kHealthy),
                        MakeDevice("rxe0", 2, DeviceHealth::kIncomplete),
                        MakeDevice("rxe1", 3, DeviceHealth::kHealthy)});
  node.pools["rdma/hca"] = {0, 1};
  const auto response = pool.Allocate({}, node);
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(DevicePaths(*response),
              ElementsAre("/dev/infiniband/uverbs0", "/dev/infiniband/umad0",
                          "/dev/infiniband/uverbs1", "/dev/infiniband/umad1",
                          "/dev/infiniband/rdma_cm"));
  EXPECT_THAT(
      response->envs(),
      UnorderedElementsAre(Pair("PURSER_POOL_HCA_DEVICES", "mlx5_0,mlx5_1")));
  ASSERT_EQ(response->mounts_size(), 1);
  EXPECT_EQ(response->mounts(0).host_path(), "/opt/host");
  EXPECT_EQ(response->mounts(0).container_path(), "/opt/container");
  EXPECT_TRUE(response->mounts(0).read_only());
  EXPECT_THAT(response->annotations(), IsEmpty());
}

TEST(PoolResource, AbsentNodesAreNotHandedOut) {
  Device bare = MakeDevice("irdma0", 0, DeviceHealth::kHealthy);
  bare.sysfs.umads.clear();
  bare.sysfs.issms.clear();
  Snapshot node = Node({bare});
  node.rdma_cm = false;
  const auto response = PoolResource(PoolConfig{}).Allocate({}, node);
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(DevicePaths(*response), ElementsAre("/dev/infiniband/uverbs0"));
}

TEST(QueueMemoryResource, LastsAsLongAsADeviceDoes) {
  const QueueMemoryResource memory(307);
  EXPECT_EQ(memory.name(), "rdma/wqe-mib");
  EXPECT_EQ(memory.Advertise(Node({})).capacity(), 0u);
  EXPECT_EQ(
      memory.Advertise(Node({MakeDevice("rxe0", 0, DeviceHealth::kIncomplete)}))
          .capacity(),
      0u);
  EXPECT_EQ(
      memory.Advertise(Node({MakeDevice("rxe0", 0, DeviceHealth::kPortDown)}))
          .allocatable(),
      307u);
}

TEST(QueueMemoryResource, AUnitIsAMebibyte) {
  const std::vector<std::string> ids(64, "0");
  const auto response = QueueMemoryResource(1000).Allocate(ids, Node({}));
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->envs(), UnorderedElementsAre(Pair(
                                    "PURSER_QUEUE_MEMORY_BYTES", "67108864")));
  EXPECT_THAT(response->devices(), IsEmpty());
}

}  // namespace
}  // namespace purser::plugin
