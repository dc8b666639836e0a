// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DeviceChoiceTest : public ::testing::Test {
 protected:
  DeviceChoiceTest() {
    config_.sysfs_root = sysfs_.sysfs_root().string();
    config_.dev_root = sysfs_.dev_root().string();
  }
  std::string Fault() {
    const absl::Status status = ChooseDevices(config_, verbs_).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
  fakes::FakeVerbs verbs_;
  Config config_;
};

TEST_F(DeviceChoiceTest, TakesTheConfiguredOnesAlone) {
  for (const char* name : {"rxe0", "rxe1", "rxe2"})
    sysfs_.AddDevice(fakes::SysfsRxe(name, "eth0"));
  config_.devices = {"rxe2", "rxe0"};
  EXPECT_THAT(*ChooseDevices(config_, verbs_), ElementsAre("rxe2", "rxe0"));
  tree_.Remove("dev/infiniband/uverbs2");
  EXPECT_THAT(Fault(), AllOf(HasSubstr("the node has rxe2 ("),
                             HasSubstr("uverbs2"), Not(HasSubstr("rxe1")),
                             HasSubstr("{limits: {rdma/hca: 1}}")));
}

TEST_F(DeviceChoiceTest, AWrongNameListsThoseThatThereAre) {
  for (const char* name : {"rxe0", "rxe1"})
    sysfs_.AddDevice(fakes::SysfsRxe(name, "eth0"));
  config_.devices = {"rxe0", "mlx5_7"};
  EXPECT_THAT(Fault(),
              HasSubstr("no RDMA device mlx5_7 on this node, which has rxe0, "
                        "rxe1: correct --device"));
}

TEST_F(DeviceChoiceTest, ADeviceOfAnotherNetworkNamespaceIsToldFromNone) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  tree_.Remove("sys/class/infiniband/rxe0");
  EXPECT_THAT(Fault(),
              AllOf(HasSubstr("exclusive"), HasSubstr("hostNetwork: true"),
                    HasSubstr("rdma system set netns shared")));
}

TEST_F(DeviceChoiceTest, TakesAllThatTheContainerWasGiven) {
  for (const char* name : {"rxe0", "rxe1", "rxe2"}) {
    sysfs_.AddDevice(fakes::SysfsRxe(name, "eth0"));
    verbs_.AddDevice(fakes::RxeDevice(name));
  }
  EXPECT_THAT(*ChooseDevices(config_, verbs_),
              ElementsAre("rxe0", "rxe1", "rxe2"));
  tree_.Remove("dev/infiniband/uverbs1");
  EXPECT_THAT(*ChooseDevices(config_, verbs_), ElementsAre("rxe0", "rxe2"));
}

TEST_F(DeviceChoiceTest, WithoutADriverItSaysSo) {
  EXPECT_THAT(Fault(), AllOf(HasSubstr("class/infiniband has no entry"),
                             HasSubstr("load it"), HasSubstr("rdma/<pool>")));
}

TEST_F(DeviceChoiceTest, WithoutADeviceNodeItSaysWhatToRequest) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  verbs_.AddDevice(fakes::RxeDevice("rxe0"));
  tree_.Remove("dev/infiniband");
  EXPECT_THAT(Fault(), AllOf(HasSubstr("rxe0 (" + config_.dev_root +
                                       "/infiniband/uverbs0)"),
                             HasSubstr("request rdma/<pool>")));
}

TEST_F(DeviceChoiceTest, WithoutUverbsItNamesTheModule) {
  fakes::SysfsFakeDevice device = fakes::SysfsRxe("rxe0", "eth0");
  device.uverbs = false;
  sysfs_.AddDevice(device);
  EXPECT_THAT(Fault(), HasSubstr("load ib_uverbs"));
}

TEST_F(DeviceChoiceTest, WithoutTheProvidersLibraryItNamesIt) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  EXPECT_THAT(Fault(), AllOf(HasSubstr("library of its provider (rxe"),
                             HasSubstr("ibverbs-providers")));
}

TEST_F(DeviceChoiceTest, AFailedReadIsNeverNoDevice) {
  tree_.Write("sys/class/infiniband", "a file");
  EXPECT_THAT(
      std::string(ChooseDevices(config_, verbs_).status().message()),
      AllOf(HasSubstr("class/infiniband"), Not(HasSubstr("no RDMA device"))));
}

}  // namespace
}  // namespace purser::sidecar
