// SPDX-License-Identifier: Apache-2.0
//
// How the inventory judges devices, over time and over network namespaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/device_resource.h"
#include "plugin/inventory.h"
#include "plugin/pool_resource.h"
#include "tests/unit/plugin/rdma_node.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InventoryHealthTest : public ::testing::Test {
 protected:
  // Scans some time after the start; the device's health.
  Device Scan(const std::string& name, std::chrono::milliseconds at = 0ms) {
    circumstances_.now = start_ + at;
    EXPECT_TRUE(inventory_.Scan(circumstances_).ok());
    for (const Device& device : inventory_.snapshot()->devices)
      if (device.sysfs.name == name) return device;
    Device none;
    none.reason = "absent";
    return none;
  }
  void SetState(int port_state) {
    node_.sysfs().SetPortState("rxe0", 1, port_state);
  }
  // As sysfs shows a device that is in another network namespace.
  void Hide(const std::string& name) {
    const std::string link = "sys/class/infiniband/" + name;
    target_ = std::filesystem::read_symlink(node_.tree().path(link)).string();
    node_.tree().Remove(link);
  }
  void Unhide(const std::string& name) {
    node_.tree().Link("sys/class/infiniband/" + name, target_);
  }
  // The same of the interfaces of its function, and back.
  void HideNetdevs(const std::string& name, bool hide) {
    const std::string bus =
        node_.tree().path(node_.sysfs().DirectoryOf(name)) + "/../..";
    std::filesystem::rename(bus + (hide ? "/net" : "/hidden"),
                            bus + (hide ? "/hidden" : "/net"));
  }
  static Config TheConfig() {
    Config config;
    config.pools[0].selectors = {Selectors{.if_names = {"eth0", "ens1f0v0"}}};
    return config;
  }
  size_t PoolSize() const {
    return inventory_.snapshot()->pools.at("rdma/hca").size();
  }

  const HealthDebounce::TimePoint start_ = std::chrono::steady_clock::now();
  RdmaNode node_;
  std::string target_;
  rdma::Discovery discovery_{node_.sysfs_root(), node_.dev_root()};
  ScanCircumstances circumstances_;
  Inventory inventory_{discovery_, node_.dev_root(), node_.proc_root(),
                       InventoryOptions(TheConfig())};
};

TEST_F(InventoryHealthTest, AnIsolatedChangeIsToldAtOnce) {
  node_.AddRxe("rxe0");
  Scan("rxe0");
  SetState(1);
  EXPECT_EQ(Scan("rxe0", 10ms).health, DeviceHealth::kPortDown);
  SetState(4);
  EXPECT_EQ(Scan("rxe0", 5000ms).health, DeviceHealth::kHealthy);
  EXPECT_EQ(inventory_.held_back_until(), std::nullopt);
}

TEST_F(InventoryHealthTest, AFlapIsToldWhenItHasEnded) {
  node_.AddRxe("rxe0");
  Scan("rxe0");
  SetState(1);
  Scan("rxe0", 100ms);
  SetState(4);
  const Device held = Scan("rxe0", 300ms);
  EXPECT_EQ(held.health, DeviceHealth::kPortDown);
  EXPECT_THAT(held.reason, HasSubstr("1000 ms"));
  EXPECT_EQ(inventory_.held_back_until(), start_ + 1300ms);
  EXPECT_EQ(Scan("rxe0", 1300ms).health, DeviceHealth::kHealthy);
  // In the other direction, too.
  SetState(1);
  EXPECT_EQ(Scan("rxe0", 5000ms).health, DeviceHealth::kPortDown);
  SetState(4);
  EXPECT_EQ(Scan("rxe0", 7000ms).health, DeviceHealth::kHealthy);
  SetState(1);
  const Device up = Scan("rxe0", 7100ms);
  EXPECT_EQ(up.health, DeviceHealth::kHealthy);
  EXPECT_EQ(up.reason, "");
  EXPECT_EQ(Scan("rxe0", 8100ms).health, DeviceHealth::kPortDown);
}

TEST_F(InventoryHealthTest, RemovalAndReturnAreToldAtOnce) {
  node_.AddRxe("rxe0");
  Scan("rxe0");
  SetState(1);
  Scan("rxe0", 10ms);
  node_.sysfs().RemoveDevice("rxe0");
  EXPECT_EQ(Scan("rxe0", 20ms).reason, "absent");
  node_.AddRxe("rxe0");
  EXPECT_EQ(Scan("rxe0", 30ms).health, DeviceHealth::kHealthy);
}

TEST_F(InventoryHealthTest, AFatalErrorMakesUnhealthyUntilItIsOver) {
  node_.AddRxe("rxe0");
  Scan("rxe0");
  circumstances_.fatal = {"rxe0"};
  const Device fatal = Scan("rxe0", 10ms);
  EXPECT_EQ(fatal.health, DeviceHealth::kFatal);
  EXPECT_THAT(fatal.reason, HasSubstr("fatal"));
  circumstances_.fatal.clear();
  EXPECT_EQ(Scan("rxe0", 500ms).health, DeviceHealth::kFatal);
  EXPECT_EQ(Scan("rxe0", 1500ms).health, DeviceHealth::kHealthy);
}

TEST_F(InventoryHealthTest, AnActivePortWithoutAPhysicalLinkIsDown) {
  node_.AddRxe("rxe0");
  const std::string phys =
      node_.sysfs().DirectoryOf("rxe0") + "/ports/1/phys_state";
  node_.tree().Write(phys, "3: Disabled\n");
  const Device device = Scan("rxe0");
  EXPECT_EQ(device.health, DeviceHealth::kPortDown);
  EXPECT_THAT(device.reason, HasSubstr("port 1 ACTIVE Ethernet (Disabled)"));
  // Drivers that do not tell, and a link that is being mended.
  for (const char* text : {"0: <unknown>\n", "6: LinkErrorRecovery\n"}) {
    node_.tree().Write(phys, text);
    EXPECT_TRUE(Scan("rxe0", 10s).healthy()) << text;
    EXPECT_TRUE(Scan("rxe0", 20s).healthy()) << text;
  }
}

TEST_F(InventoryHealthTest, ChangesOfPortsAreCounted) {
  node_.AddRxe("rxe0");
  Scan("rxe0");
  EXPECT_THAT(inventory_.port_changes().counts(), IsEmpty());
  node_.sysfs().SetLinkLayer("rxe0", 1, "InfiniBand");
  Scan("rxe0");
  node_.tree().Write(node_.sysfs().DirectoryOf("rxe0") + "/ports/1/lid",
                     "0x17\n");
  node_.sysfs().SetGid("rxe0", 1,
                       {.index = 4,
                        .gid = "fe80:0000:0000:0000:0000:00ff:fe00:0007",
                        .type = "RoCE v2",
                        .netdev = "eth0"});
  Scan("rxe0");
  SetState(1);
  Scan("rxe0");
  SetState(4);
  Scan("rxe0");
  const auto counts = inventory_.port_changes().counts();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].device, "rxe0");
  EXPECT_EQ(counts[0].port_num, 1);
  EXPECT_THAT(counts[0].counts, ElementsAre(2, 1, 1, 1));
}

// A pod has it: sysfs shows no more than its character device.
TEST_F(InventoryHealthTest, ADeviceOfAnotherNamespaceStaysAdvertised) {
  circumstances_.exclusive_namespaces = true;
  node_.sysfs().AddDevice(fakes::SysfsMlx5Vf("mlx5_3", "ens1f0v0"));
  node_.AddRxe("rxe0");
  Scan("mlx5_3");
  EXPECT_EQ(PoolSize(), 2u);
  const std::string pci = inventory_.snapshot()->devices[0].sysfs.pci_address;
  EXPECT_NE(pci, "");
  Hide("mlx5_3");
  const Device away = Scan("mlx5_3", 10ms);
  EXPECT_EQ(away.health, DeviceHealth::kOtherNamespace);
  EXPECT_TRUE(away.healthy());
  EXPECT_THAT(away.reason, HasSubstr("network namespace"));
  EXPECT_EQ(away.sysfs.pci_address, pci);
  EXPECT_EQ(PoolSize(), 2u);  // by what was known of it
  Unhide("mlx5_3");
  EXPECT_EQ(Scan("mlx5_3", 20ms).health, DeviceHealth::kHealthy);
}

TEST_F(InventoryHealthTest, AfterARestartItIsKnownByItsPlaceOnTheBus) {
  circumstances_.exclusive_namespaces = true;
  node_.sysfs().AddDevice(fakes::SysfsMlx5Vf("mlx5_3", "ens1f0v0"));
  Hide("mlx5_3");
  const Device away = Scan("mlx5_3");
  EXPECT_EQ(away.health, DeviceHealth::kOtherNamespace);
  EXPECT_EQ(away.sysfs.driver, "mlx5_core");
  EXPECT_NE(away.sysfs.pci_address, "");
  EXPECT_EQ(away.sysfs.vendor_id, "15b3");
}

// The plugin is started again while a pod has the device: its interface, by
// which the pool selects it, is the pod's.
TEST_F(InventoryHealthTest, TheKubeletTellsWhichPoolADeviceElsewhereIsOf) {
  circumstances_.exclusive_namespaces = true;
  node_.sysfs().AddDevice(fakes::SysfsMlx5Vf("mlx5_3", "ens1f0v0"));
  const std::string id = Scan("mlx5_3").sysfs.pci_address;
  Hide("mlx5_3");
  HideNetdevs("mlx5_3", true);
  node_.sysfs().AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_9"));
  node_.AddRxe("rxe0");
  for (const PoolUnit unit : {PoolUnit::kDevice, PoolUnit::kDeviceShare}) {
    Config config = TheConfig();
    config.pools[0].unit = unit;
    config.pools.push_back(PoolConfig{.resource_name = "other", .unit = unit});
    config.pools[1].selectors = {Selectors{.if_names = {"none"}}};
    absl::StatusOr<HeldUnits> held = HeldUnits();
    int asked = 0;
    Inventory inventory(discovery_, node_.dev_root(), node_.proc_root(),
                        InventoryOptions(config), nullptr, [&] {
                          ++asked;
                          return held;
                        });
    auto members = [&] {
      EXPECT_TRUE(inventory.Scan(circumstances_).ok());
      std::vector<std::string> names;
      for (const Device* device : inventory.snapshot()->members("rdma/hca"))
        names.push_back(device->sysfs.name);
      EXPECT_THAT(inventory.snapshot()->members("rdma/other"), IsEmpty());
      return names;
    };
    // Nobody has it, or another one: it is not of the pool.
    EXPECT_THAT(members(), ElementsAre("rxe0"));
    held->insert({"rdma/hca", {"0000:00:00.0", "0000:00:00.0-1"}});
    EXPECT_THAT(members(), ElementsAre("rxe0"));
    held->at("rdma/hca") = {unit == PoolUnit::kDevice ? id : id + "-7"};
    EXPECT_THAT(members(), ElementsAre("mlx5_3", "rxe0"));
    // A kubelet that does not answer has not taken it back.
    held = absl::UnavailableError("restarting");
    EXPECT_THAT(members(), ElementsAre("mlx5_3", "rxe0"));
    EXPECT_EQ(asked, 4);
    // And the one that comes back is told by its interface.
    Unhide("mlx5_3");
    HideNetdevs("mlx5_3", false);
    EXPECT_THAT(members(), ElementsAre("mlx5_3", "rxe0"));
    EXPECT_EQ(asked, 4);
    Hide("mlx5_3");
    HideNetdevs("mlx5_3", true);
  }
}

TEST_F(InventoryHealthTest, ADeviceThatIsRemovedIsNotInAnotherNamespace) {
  circumstances_.exclusive_namespaces = true;
  node_.AddRxe("rxe0");
  Scan("rxe0");
  node_.sysfs().RemoveDevice("rxe0");
  EXPECT_EQ(Scan("rxe0").reason, "absent");
}

TEST_F(InventoryHealthTest, InSharedModeWhatIsNotSeenIsGone) {
  node_.AddRxe("rxe0");
  Scan("rxe0");
  Hide("rxe0");
  EXPECT_EQ(Scan("rxe0").reason, "absent");
  EXPECT_EQ(PoolSize(), 0u);
}

TEST_F(InventoryHealthTest, APoolMayIgnoreHealth) {
  node_.AddRxe("rxe0");
  SetState(1);
  Scan("rxe0");
  PoolConfig pool = TheConfig().pools[0];
  EXPECT_EQ(PoolResource(pool).Advertise(*inventory_.snapshot()).allocatable(),
            0u);
  pool.health_check = false;
  EXPECT_EQ(PoolResource(pool).Advertise(*inventory_.snapshot()).allocatable(),
            1000u);
  pool.unit = PoolUnit::kDevice;
  EXPECT_EQ(
      DeviceResource(pool).Advertise(*inventory_.snapshot()).allocatable(), 1u);
  pool.health_check = true;
  EXPECT_EQ(
      DeviceResource(pool).Advertise(*inventory_.snapshot()).allocatable(), 0u);
}

}  // namespace
}  // namespace purser::plugin
