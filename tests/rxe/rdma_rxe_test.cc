// SPDX-License-Identifier: Apache-2.0
//
// rdma/ on a real soft-RoCE device; verbs_contract_*_test.cc runs on it too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rdma/discovery.h"
#include "rdma/verbs.h"
#include "tests/unit/rdma/verbs_contract.h"

namespace purser::rdma {
namespace {

struct RxeSubject : ContractSubject {
  RxeSubject() { sysfs_root = "/sys"; }
  Verbs& verbs() override { return LibibverbsVerbs(); }
};

bool HasRxe() {
  const auto names = LibibverbsVerbs().DeviceNames();
  if (!names.ok()) return false;
  return std::find(names->begin(), names->end(), "rxe0") != names->end();
}

TEST(RxeDiscoveryTest, ShowsTheDeviceAsItIs) {
  if (!HasRxe()) GTEST_SKIP() << "no RDMA device rxe0 here";
  const auto devices = Discovery().Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_FALSE(devices->empty());
  const SysfsDevice& device = devices->front();
  EXPECT_EQ(device.name, "rxe0");
  EXPECT_EQ(device.driver, "rdma_rxe");
  EXPECT_EQ(device.provider, queue_memory::Provider::kRxe);
  EXPECT_EQ(device.pci_address, "");
  EXPECT_FALSE(device.parent_netdev.empty());
  EXPECT_EQ(device.numa_node, -1);
  EXPECT_EQ(device.node_guid.size(), 19u);
  EXPECT_EQ(device.uverbs, "uverbs0");
  EXPECT_TRUE(device.umads.empty());
  ASSERT_EQ(device.ports.size(), 1u);
  EXPECT_TRUE(device.ports[0].active());
  EXPECT_EQ(device.ports[0].phys_state, 5);
  EXPECT_EQ(device.ports[0].link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(device.ports[0].rate_mbps, 2500u);
  EXPECT_EQ(device.ports[0].netdevs,
            std::vector<std::string>{device.parent_netdev});
}

}  // namespace

std::unique_ptr<ContractSubject> MakeContractSubject() {
  return HasRxe() ? std::make_unique<RxeSubject>() : nullptr;
}

}  // namespace purser::rdma
