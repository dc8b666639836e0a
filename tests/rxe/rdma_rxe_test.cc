// SPDX-License-Identifier: Apache-2.0
//
// rdma/ on a real soft-RoCE device; verbs_contract_*_test.cc runs on it too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "rdma/capabilities.h"
#include "rdma/discovery.h"
#include "rdma/handles.h"
#include "rdma/verbs.h"
#include "spdlog/fmt/fmt.h"
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

// Moves the port and its address about. Only where the netdev is there for
// that.
class RxeNetdevTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasRxe()) GTEST_SKIP() << "no RDMA device rxe0 here";
    netdev_ = Discovery().Device("rxe0")->parent_netdev;
    if (!netdev_.starts_with("dummy"))
      GTEST_SKIP() << "rxe0 is on " << netdev_ << ", which is in use";
    context_ = *OpenDevice(verbs_, "rxe0");
  }
  void Ip(const std::string& arguments) {
    ASSERT_EQ(std::system(("ip " + arguments).c_str()), 0) << arguments;
  }
  // The next event; waits for it.
  ibv_event_type NextEvent() {
    pollfd readable{.fd = context_->async_fd, .events = POLLIN};
    EXPECT_EQ(poll(&readable, 1, 10000), 1);
    ibv_async_event event{};
    const auto got = verbs_.GetAsyncEvent(context_.get(), &event);
    EXPECT_TRUE(got.ok() && *got);
    if (!got.ok() || !*got) return IBV_EVENT_DEVICE_FATAL;
    verbs_.AckAsyncEvent(&event);
    return event.event_type;
  }
  // Until `done` or ten seconds are over.
  static bool Eventually(const std::function<bool()>& done) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return done();
  }

  Verbs& verbs_ = LibibverbsVerbs();
  std::string netdev_;
  Context context_;
};

TEST_F(RxeNetdevTest, PortFollowsTheNetdev) {
  const auto active = [] {
    return Discovery().Device("rxe0")->ports[0].active();
  };
  ASSERT_TRUE(active());
  Ip("link set " + netdev_ + " down");
  EXPECT_EQ(NextEvent(), IBV_EVENT_PORT_ERR);
  EXPECT_TRUE(Eventually([&] { return !active(); }));
  EXPECT_NE(verbs_.QueryPort(context_.get(), 1)->state, IBV_PORT_ACTIVE);
  Ip("link set " + netdev_ + " up");
  ibv_event_type event = NextEvent();
  while (event == IBV_EVENT_GID_CHANGE) event = NextEvent();
  EXPECT_EQ(event, IBV_EVENT_PORT_ACTIVE);
  EXPECT_TRUE(Eventually(active));
  EXPECT_EQ(verbs_.QueryPort(context_.get(), 1)->state, IBV_PORT_ACTIVE);
}

TEST_F(RxeNetdevTest, PreferredGidFollowsTheAddress) {
  const auto preferred = [&] {
    return PreferredGid(verbs_, context_, 1, "/sys");
  };
  const auto before = preferred();
  ASSERT_TRUE(before.ok() && before->ipv4_mapped);
  const auto* ip = &before->gid.raw[12];
  Ip("-4 address flush dev " + netdev_);
  EXPECT_TRUE(Eventually([&] {
    const auto gid = preferred();
    return !gid.ok() || !gid->ipv4_mapped;
  }));
  Ip(fmt::format("address add {}.{}.{}.{}/24 dev {}", ip[0], ip[1], ip[2],
                 ip[3], netdev_));
  EXPECT_TRUE(Eventually([&] {
    const auto gid = preferred();
    return gid.ok() && gid->ipv4_mapped &&
           std::memcmp(gid->gid.raw, before->gid.raw, 16) == 0;
  }));
}

}  // namespace

std::unique_ptr<ContractSubject> MakeContractSubject() {
  return HasRxe() ? std::make_unique<RxeSubject>() : nullptr;
}

}  // namespace purser::rdma
