// SPDX-License-Identifier: Apache-2.0
#include "cli/find_device.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"

namespace purser::cli {
namespace {

using testing::HasSubstr;

class FindDeviceTest : public testing::Test {
 protected:
  absl::StatusOr<planner::Device> Find(const std::string& name) {
    return FindDevice(verbs_, sysfs_.sysfs_root().string(),
                      sysfs_.dev_root().string(), name, kernel_release_);
  }

  std::string kernel_release_ = "6.12.1";
  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
  fakes::FakeVerbs verbs_;
};

TEST_F(FindDeviceTest, AnOpenedDeviceTellsItsLimits) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  fakes::FakeDevice rxe = fakes::RxeDevice("rxe0");
  rxe.attr.max_qp = 77;
  rxe.attr.max_qp_wr = 5000;
  verbs_.AddDevice(rxe);
  const auto device = Find("rxe0");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "rxe0");
  EXPECT_EQ(device->provider, queue_memory::Provider::kRxe);
  EXPECT_EQ(device->limits.max_qp_wr, 5000u);
  EXPECT_EQ(device->counts.max_qp, 77u);
  EXPECT_EQ(device->what, "soft-RoCE of current kernels");
  EXPECT_EQ(verbs_.LiveObjectCount(), 0);
}

TEST_F(FindDeviceTest, TheKernelTellsTheRule) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  verbs_.AddDevice(fakes::RxeDevice("rxe0"));
  EXPECT_TRUE(Find("rxe0")->limits.writes_back_real_slots);
  kernel_release_ = "6.1.0-31-amd64";
  EXPECT_FALSE(Find("rxe0")->limits.writes_back_real_slots);
  EXPECT_EQ(Find("rxe0")->what,
            "soft-RoCE of Linux 5.16 to 6.5: writes back what was asked");
  kernel_release_ = "?";
  EXPECT_TRUE(absl::IsInvalidArgument(Find("rxe0").status()));
}

TEST_F(FindDeviceTest, OneThatCannotBeOpenedHasItsProvidersDefaults) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  verbs_.AddDevice(fakes::RxeDevice("rxe0"));
  verbs_.FailNext("open_device", EACCES);
  const auto device = Find("rxe0");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->provider, queue_memory::Provider::kRxe);
  EXPECT_EQ(device->limits.max_qp_wr, 0u);
  EXPECT_THAT(device->what, HasSubstr("limits are the defaults of rxe, since "
                                      "it cannot be opened: "));
}

TEST_F(FindDeviceTest, OthersAreListed) {
  EXPECT_THAT(std::string(Find("mlx5_0").status().message()),
              HasSubstr("no RDMA device mlx5_0 on this machine, which has "
                        "none"));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe1", "eth1"));
  const absl::Status status = Find("mlx5_0").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("which has rxe0, rxe1; for a device elsewhere: "
                        "--provider"));
}

TEST_F(FindDeviceTest, TheOnlyOneNeedsNoName) {
  EXPECT_TRUE(absl::IsNotFound(Find("").status()));
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  fakes::FakeDevice rxe = fakes::RxeDevice("rxe0");
  rxe.attr.max_mr = 66;
  verbs_.AddDevice(rxe);
  const auto device = Find("");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "rxe0");
  EXPECT_TRUE(device->opened);
  EXPECT_EQ(device->counts.max_mr, 66u);
  sysfs_.AddDevice(fakes::SysfsRxe("rxe1", "eth1"));
  EXPECT_TRUE(absl::IsInvalidArgument(Find("").status()));
  EXPECT_THAT(std::string(Find("").status().message()),
              HasSubstr("rxe0, rxe1: name one by --device"));
}

TEST_F(FindDeviceTest, FailureIsNotAbsence) {
  tree_.Write("sys/class/infiniband", "no directory");
  EXPECT_FALSE(absl::IsNotFound(Find("rxe0").status()));
  EXPECT_FALSE(Find("rxe0").ok());
}

}  // namespace
}  // namespace purser::cli
