// SPDX-License-Identifier: Apache-2.0
#include "plugin/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_verbs.h"
#include "tests/unit/plugin/rdma_node.h"

namespace purser::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PoolConfig Pool(const std::string& name, Selectors selectors = {}) {
  PoolConfig pool;
  pool.resource_name = name;
  pool.selectors = {std::move(selectors)};
  return pool;
}

class InventoryTest : public ::testing::Test {
 protected:
  static InventoryOptions Options(
      std::vector<PoolConfig> pools,
      OverlapPolicy overlap = OverlapPolicy::kFirstWins) {
    Config config;
    config.pools = std::move(pools);
    config.overlap = overlap;
    config.health_debounce = std::chrono::milliseconds(0);
    return InventoryOptions(config);
  }
  Inventory Make(std::vector<PoolConfig> pools,
                 OverlapPolicy overlap = OverlapPolicy::kFirstWins) {
    return Inventory(discovery_, node_.dev_root(), node_.proc_root(),
                     Options(std::move(pools), overlap));
  }

  RdmaNode node_;
  rdma::Discovery discovery_{node_.sysfs_root(), node_.dev_root()};
};

TEST_F(InventoryTest, NothingIsKnownBeforeTheFirstScan) {
  EXPECT_EQ(Make({Pool("hca")}).snapshot(), nullptr);
}

TEST_F(InventoryTest, NoDeviceIsAGoodSnapshotWithoutDevices) {
  Inventory inventory = Make({Pool("hca")});
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_THAT(inventory.snapshot()->devices, IsEmpty());
  EXPECT_FALSE(inventory.snapshot()->has_complete_device());
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/hca"), IsEmpty());
}

TEST_F(InventoryTest, DevicesComeAndGo) {
  Inventory inventory = Make({Pool("hca")});
  ASSERT_TRUE(inventory.Scan().ok());
  node_.AddRxe("rxe0");
  ASSERT_TRUE(inventory.Scan().ok());
  ASSERT_EQ(inventory.snapshot()->devices.size(), 1u);
  EXPECT_EQ(inventory.snapshot()->devices[0].health, DeviceHealth::kHealthy);
  EXPECT_TRUE(inventory.snapshot()->rdma_cm);
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/hca"), ElementsAre(0));
  node_.sysfs().RemoveDevice("rxe0");
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_THAT(inventory.snapshot()->devices, IsEmpty());
}

TEST_F(InventoryTest, AFailedScanKeepsTheLastGoodList) {
  node_.AddRxe("rxe0");
  Inventory inventory = Make({Pool("hca")});
  ASSERT_TRUE(inventory.Scan().ok());
  node_.BreakSysfs();
  EXPECT_FALSE(inventory.Scan().ok());
  EXPECT_FALSE(inventory.Scan().ok());
  EXPECT_EQ(inventory.scan_errors(), 2u);
  ASSERT_EQ(inventory.snapshot()->devices.size(), 1u);
  node_.RepairSysfs();
  EXPECT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.scan_errors(), 2u);
}

TEST_F(InventoryTest, APortThatIsDownMakesTheDeviceUnhealthyUntilItIsUp) {
  node_.AddRxe("rxe0");
  Inventory inventory = Make({Pool("hca")});
  node_.sysfs().SetPortState("rxe0", 1, 1);
  ASSERT_TRUE(inventory.Scan().ok());
  const Device down = inventory.snapshot()->devices[0];
  EXPECT_EQ(down.health, DeviceHealth::kPortDown);
  EXPECT_THAT(down.reason, HasSubstr("port 1 DOWN Ethernet"));
  EXPECT_TRUE(inventory.snapshot()->has_complete_device());
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/hca"), ElementsAre(0));
  node_.sysfs().SetPortState("rxe0", 1, 4);
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].health, DeviceHealth::kHealthy);
}

// The driver makes the sysfs device first, then its character devices; udev
// may be later still.
TEST_F(InventoryTest, ADeviceCountsOnlyWhenItIsComplete) {
  fakes::SysfsFakeDevice loading = fakes::SysfsRxe("rxe0", "eth0");
  loading.uverbs = false;
  loading.mad = true;
  node_.sysfs().AddDevice(loading);
  Inventory inventory = Make({Pool("hca")});
  ASSERT_TRUE(inventory.Scan().ok());
  const Device early = inventory.snapshot()->devices[0];
  EXPECT_EQ(early.health, DeviceHealth::kIncomplete);
  EXPECT_THAT(early.reason, HasSubstr("ib_uverbs"));
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/hca"), IsEmpty());
  EXPECT_FALSE(inventory.snapshot()->has_complete_device());

  node_.sysfs().AddUverbs("rxe0");
  node_.tree().Remove("dev/infiniband/uverbs0");
  node_.tree().Remove("dev/infiniband/issm0");
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].health, DeviceHealth::kIncomplete);
  EXPECT_THAT(inventory.snapshot()->devices[0].reason, HasSubstr("uverbs0"));

  node_.tree().Write("dev/infiniband/uverbs0", "");
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].health, DeviceHealth::kHealthy);
  EXPECT_THAT(inventory.snapshot()->devices[0].sysfs.umads,
              ElementsAre("umad0"));
  EXPECT_THAT(inventory.snapshot()->devices[0].sysfs.issms, IsEmpty());
}

TEST_F(InventoryTest, WithoutSightOfDevSysfsIsBelieved) {
  node_.AddRxe("rxe0");
  node_.tree().Remove("dev/infiniband");
  Inventory inventory = Make({Pool("hca")});
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].health, DeviceHealth::kHealthy);
  EXPECT_FALSE(inventory.snapshot()->rdma_cm);
}

TEST_F(InventoryTest, OnePortUpIsEnough) {
  node_.sysfs().AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  node_.sysfs().SetPortState("mlx5_0", 1, 1);
  Inventory inventory = Make({Pool("hca")});
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].health, DeviceHealth::kHealthy);
}

// A device without umad is no lesser device (EFA), and a virtual one has no
// PCI function.
TEST_F(InventoryTest, EveryKindOfDeviceCounts) {
  node_.sysfs().AddDevice(fakes::SysfsEfa("efa_0"));
  node_.sysfs().AddDevice(fakes::SysfsSiw("siw0", "eth0"));
  node_.sysfs().AddDevice(fakes::SysfsMlx5Sf("mlx5_2", "en3f0pf0sf1"));
  node_.sysfs().AddDevice(fakes::SysfsMlx5Vf("mlx5_3", "ens1f0v0"));
  Inventory inventory = Make({Pool("efa", {.drivers = {"efa"}}),
                              Pool("siw", {.drivers = {"siw"}}),
                              Pool("sf", {.if_names = {"en3f0pf0sf1"}}),
                              Pool("mlx5", {.vendors = {"15b3"}})});
  ASSERT_TRUE(inventory.Scan().ok());
  const std::shared_ptr<const Snapshot> snapshot = inventory.snapshot();
  for (const Device& device : snapshot->devices)
    EXPECT_EQ(device.health, DeviceHealth::kHealthy) << device.sysfs.name;
  EXPECT_THAT(snapshot->devices[0].sysfs.umads, IsEmpty());
  EXPECT_THAT(snapshot->pools.at("rdma/efa"), ElementsAre(0));
  EXPECT_THAT(snapshot->pools.at("rdma/siw"), ElementsAre(3));
  EXPECT_THAT(snapshot->pools.at("rdma/sf"), ElementsAre(1));
  EXPECT_THAT(snapshot->pools.at("rdma/mlx5"), ElementsAre(2));
}

TEST_F(InventoryTest, TheFirstOfOverlappingPoolsHasTheDevice) {
  node_.AddRxe("rxe0");
  node_.sysfs().AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  const std::vector<PoolConfig> pools = {Pool("a", {.devices = {"mlx5_*"}}),
                                         Pool("b")};
  Inventory exclusive = Make(pools);
  ASSERT_TRUE(exclusive.Scan().ok());
  EXPECT_THAT(exclusive.snapshot()->pools.at("rdma/a"), ElementsAre(0));
  EXPECT_THAT(exclusive.snapshot()->pools.at("rdma/b"), ElementsAre(1));
  Inventory shared = Make(pools, OverlapPolicy::kAllow);
  ASSERT_TRUE(shared.Scan().ok());
  EXPECT_THAT(shared.snapshot()->pools.at("rdma/a"), ElementsAre(0));
  EXPECT_THAT(shared.snapshot()->pools.at("rdma/b"), ElementsAre(0, 1));
}

TEST_F(InventoryTest, ADeviceOfTwoPoolsIsInNeitherWhereThatIsRefused) {
  node_.AddRxe("rxe0");
  node_.AddRxe("rxe1");
  Inventory inventory = Make({Pool("a", {.devices = {"rxe0"}}), Pool("b")},
                             OverlapPolicy::kRefuse);
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/a"), IsEmpty());
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/b"), ElementsAre(1));
  EXPECT_THAT(inventory.snapshot()->overlaps,
              ElementsAre(Overlap{"rxe0", "rdma/a", "rdma/b"}));
}

TEST_F(InventoryTest, OtherPoolsGetTheDevicesOfTheLastScan) {
  node_.AddRxe("rxe0");
  Inventory inventory = Make({Pool("a")});
  ASSERT_TRUE(inventory.Scan().ok());
  node_.BreakSysfs();
  inventory.Configure(Options({Pool("b")}));
  EXPECT_FALSE(inventory.snapshot()->pools.contains("rdma/a"));
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/b"), ElementsAre(0));
}

TEST_F(InventoryTest, ConfiguredBeforeTheFirstScanItKnowsNothingYet) {
  Inventory inventory = Make({Pool("a")});
  inventory.Configure(Options({Pool("b")}));
  EXPECT_EQ(inventory.snapshot(), nullptr);
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_TRUE(inventory.snapshot()->pools.contains("rdma/b"));
}

TEST_F(InventoryTest, TheDefaultRoutesDeviceIsNotTheSriovPlugins) {
  node_.sysfs().AddDevice(fakes::SysfsMlx5Vf("mlx5_3", "ens1f0v0"));
  PoolConfig pool = Pool("vf");
  pool.reach = Reach::kSriovNetDevice;
  Inventory inventory = Make({pool});
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/vf"), ElementsAre(0));
  node_.tree().Write("proc/net/route",
                     "ens1f0v0\t00000000\t0102000A\t3\t0\t0\t0\t00000000\n");
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_THAT(inventory.snapshot()->pools.at("rdma/vf"), IsEmpty());
}

TEST_F(InventoryTest, AsksADeviceForItsQueuePairsOnceAndOnlyWhereItIsWanted) {
  node_.AddRxe("rxe0");
  fakes::FakeVerbs verbs;
  verbs.AddDevice(fakes::RxeDevice("rxe0"));
  const uint64_t max_qp =
      static_cast<uint64_t>(fakes::RxeDevice("rxe0").attr.max_qp);
  QueuePairLimits limits(verbs);
  Config config;
  Inventory inventory(discovery_, node_.dev_root(), node_.proc_root(),
                      InventoryOptions(config), &limits);
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].max_qp, std::nullopt);

  config.queue_pairs.enabled = true;
  verbs.FailNext("open_device", EPERM);
  inventory.Configure(InventoryOptions(config));
  EXPECT_EQ(inventory.snapshot()->devices[0].max_qp, std::nullopt);
  EXPECT_THAT(inventory.snapshot()->devices[0].max_qp_unknown,
              HasSubstr("EPERM"));
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].max_qp, max_qp);
  EXPECT_EQ(inventory.snapshot()->devices[0].max_qp_unknown, "");
  // What is known is not asked again.
  ASSERT_TRUE(inventory.Scan().ok());
  EXPECT_EQ(inventory.snapshot()->devices[0].max_qp, max_qp);
  EXPECT_EQ(verbs.Calls("open_device"), 2u);
  EXPECT_EQ(verbs.LiveObjectCount(), 0);

  config.queue_pairs.capacity = 100;
  inventory.Configure(InventoryOptions(config));
  EXPECT_EQ(inventory.snapshot()->devices[0].max_qp, std::nullopt);
}

}  // namespace
}  // namespace purser::plugin
