// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/fakes/file_tree.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() : sysfs_(tree_) {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    verbs_.AddDevice(fakes::RxeDevice());
  }
  ~DeviceTest() override { EXPECT_EQ(verbs_.LiveObjectCount(), 0); }

  absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& name) {
    return Device::Open(verbs_, name,
                        {.sysfs = tree_.path("sys"),
                         .dev = tree_.path("dev"),
                         .proc = tree_.path("proc")});
  }

  fakes::FakeVerbs verbs_;
  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_;
};

TEST_F(DeviceTest, KnowsProviderLimitsAndPort) {
  const auto device = Open("rxe0");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->provider(), queue_memory::Provider::kRxe);
  EXPECT_EQ((*device)->port_num(), 1);
  const DeviceTraits traits = (*device)->traits();
  EXPECT_EQ(traits.name, "rxe0");
  EXPECT_EQ(traits.provider, queue_memory::Provider::kRxe);
  EXPECT_EQ(traits.max_qp, 1048560u);
  EXPECT_EQ(traits.limits.max_cqe, 32767u);
}

// X722 is driven by i40e and sizes its entries otherwise than E810.
TEST_F(DeviceTest, TheKernelDriverTellsTheKindOfDevice) {
  sysfs_.AddDevice(
      {.name = "irdma0", .pci_address = "0000:3d:00.0", .driver = "i40e"});
  verbs_.AddDevice(fakes::RxeDevice("irdma0"));
  const DeviceTraits traits = (*Open("irdma0"))->traits();
  EXPECT_EQ(traits.provider, queue_memory::Provider::kIrdma);
  EXPECT_EQ(traits.limits.irdma.generation, 1u);
  EXPECT_EQ(traits.limits.max_inline_data, 48u);
  EXPECT_EQ(traits.limits.max_cqe, 32767u) << "as the device tells";
}

TEST_F(DeviceTest, TakesTheFirstActivePort) {
  fakes::FakeDevice two_ports = fakes::RxeDevice("rxe1");
  two_ports.attr.phys_port_cnt = 2;
  two_ports.ports.push_back(two_ports.ports[0]);
  two_ports.ports[0].attr.state = IBV_PORT_DOWN;
  sysfs_.AddDevice(fakes::SysfsRxe("rxe1", "eth1"));
  verbs_.AddDevice(two_ports);
  EXPECT_EQ((*Open("rxe1"))->port_num(), 2);
  verbs_.SetPortState("rxe1", 2, IBV_PORT_DOWN);
  EXPECT_EQ((*Open("rxe1"))->port_num(), 1) << "none is active";
}

TEST_F(DeviceTest, LooksThePreferredGidUpEachTime) {
  const auto device = Open("rxe0");
  ASSERT_TRUE(device.ok());
  EXPECT_EQ((*device)->PreferredGid()->index, 1);
  verbs_.SetGid("rxe0", 1, 1, ibv_gid{});
  verbs_.SetGid("rxe0", 1, 4, fakes::Ipv4Gid("192.0.2.7"));
  sysfs_.SetGid(
      "rxe0", 1,
      {4, "0000:0000:0000:0000:0000:ffff:c000:0207", "RoCE v2", "eth0"});
  EXPECT_EQ((*device)->PreferredGid()->index, 4);
}

TEST_F(DeviceTest, NoSuchDeviceListsThoseThatThereAre) {
  const absl::Status status = Open("mlx5_7").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("mlx5_7"), HasSubstr("there are: rxe0")));
}

TEST_F(DeviceTest, AMissingDeviceNodeNamesTheResourceToRequest) {
  tree_.Remove("dev/infiniband/uverbs0");
  verbs_.FailNext("open_device", ENOENT);
  const absl::Status status = Open("rxe0").status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("uverbs0"), HasSubstr("rdma/<pool>")));
}

TEST_F(DeviceTest, ANodeThatMayNotBeOpenedSaysSo) {
  verbs_.FailNext("open_device", EACCES);
  const absl::Status status = Open("rxe0").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("allowed to open it"), Not(HasSubstr("pool"))));
}

TEST_F(DeviceTest, EnomemNamesTheMemlockLimitWhereItBinds) {
  tree_.Write("proc/self/limits",
              "Max locked memory         65536                65536            "
              "    bytes     \n");
  tree_.Write("proc/self/status", "CapEff:\t0000000000000000\n");
  for (const char* call : {"open_device", "alloc_pd"}) {
    verbs_.FailNext(call, ENOMEM);
    const absl::Status status = Open("rxe0").status();
    EXPECT_EQ(rdma::ErrnoOf(status), ENOMEM);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(call), HasSubstr("64 KiB"), HasSubstr("IPC_LOCK")));
  }
  tree_.Write("proc/self/status", "CapEff:\t0000000000004000\n");
  verbs_.FailNext("alloc_pd", ENOMEM);
  EXPECT_THAT(std::string(Open("rxe0").status().message()),
              Not(HasSubstr("MEMLOCK")));
}

TEST_F(DeviceTest, EveryFailureOnTheWayLeaksNothing) {
  for (const char* call :
       {"open_device", "query_device", "alloc_pd", "query_port"}) {
    verbs_.FailNext(call, EIO);
    EXPECT_FALSE(Open("rxe0").ok()) << call;
    EXPECT_EQ(verbs_.LiveObjectCount(), 0) << call;
  }
}

}  // namespace
}  // namespace purser::sidecar
