// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/opened_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OpenedDevicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Add("rxe0");
    auto opened = OpenedDevices::Create(verbs_, sysfs_.sysfs_root());
    ASSERT_TRUE(opened.ok()) << opened.status();
    opened_ = *std::move(opened);
  }
  void TearDown() override {
    opened_.reset();
    EXPECT_EQ(verbs_.LiveObjectCount(), 0);
  }
  void Add(const std::string& name) {
    verbs_.AddDevice(fakes::RxeDevice(name));
    sysfs_.AddDevice(fakes::SysfsRxe(name, "eth0"));
  }
  bool Readable() const {
    pollfd waited{opened_->fd(), POLLIN, 0};
    return poll(&waited, 1, 0) == 1;
  }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
  fakes::FakeVerbs verbs_;
  std::unique_ptr<OpenedDevices> opened_;
  OpenedDevices::TimePoint now_ = std::chrono::steady_clock::now();
};

TEST_F(OpenedDevicesTest, TellOfEveryDevicesEvents) {
  Add("rxe1");
  EXPECT_EQ(opened_->Take().value(), 0u);
  opened_->Follow({"rxe0", "rxe1"}, now_);
  EXPECT_TRUE(opened_->status().ok());
  EXPECT_FALSE(Readable());
  verbs_.SetPortState("rxe0", 1, IBV_PORT_DOWN);
  verbs_.RaiseAsyncEvent("rxe1", IBV_EVENT_GID_CHANGE);
  verbs_.RaiseAsyncEvent("rxe1", IBV_EVENT_LID_CHANGE);
  EXPECT_TRUE(Readable());
  EXPECT_EQ(opened_->Take().value(), 3u);
  EXPECT_FALSE(Readable());
  EXPECT_THAT(opened_->fatal(), IsEmpty());
}

// Its removal waits for that.
TEST_F(OpenedDevicesTest, ADeviceIsClosedWhenSysfsShowsItGone) {
  opened_->Follow({"rxe0"}, now_);
  opened_->CloseGone();
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
  verbs_.RemoveDevice("rxe0", fakes::Removal::kZombie);
  sysfs_.RemoveDevice("rxe0");
  opened_->CloseGone();
  EXPECT_TRUE(verbs_.AwaitRemoval("rxe0"));
  Add("rxe0");
  opened_->Follow({"rxe0"}, now_);
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
}

TEST_F(OpenedDevicesTest, ADeviceThatIsMadeAnewIsOpenedAnew) {
  opened_->Follow({"rxe0"}, now_);
  verbs_.RemoveDevice("rxe0", fakes::Removal::kDisassociate);
  sysfs_.RemoveDevice("rxe0");
  EXPECT_EQ(opened_->Take().value(), 1u);
  EXPECT_THAT(opened_->fatal(), ElementsAre("rxe0"));
  Add("rxe0");
  opened_->Follow({"rxe0"}, now_);
  EXPECT_THAT(opened_->fatal(), IsEmpty());
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
}

TEST_F(OpenedDevicesTest, AFatalErrorLastsUntilTheDeviceOpensAgain) {
  opened_->Follow({"rxe0"}, now_);
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(opened_->Take().value(), 1u);
  EXPECT_EQ(verbs_.LiveObjectCount(), 0);
  opened_->Follow({"rxe0"}, now_);
  opened_->Follow({"rxe0"}, now_ + 9s);
  EXPECT_THAT(opened_->fatal(), ElementsAre("rxe0"));
  verbs_.FailNext("open_device", EIO);
  opened_->Follow({"rxe0"}, now_ + 10s);
  opened_->Follow({"rxe0"}, now_ + 19s);
  EXPECT_THAT(opened_->fatal(), ElementsAre("rxe0"));
  opened_->Follow({"rxe0"}, now_ + 20s);
  EXPECT_THAT(opened_->fatal(), IsEmpty());
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
}

TEST_F(OpenedDevicesTest, WhatMayNotBeOpenedIsSaidAndTriedAgain) {
  verbs_.FailAlways("open_device", EPERM);
  opened_->Follow({"rxe0"}, now_);
  EXPECT_TRUE(absl::IsPermissionDenied(opened_->status()));
  EXPECT_THAT(opened_->fatal(), IsEmpty());
  verbs_.StopFailing("open_device");
  opened_->Follow({"rxe0"}, now_ + 1s);
  EXPECT_FALSE(opened_->status().ok());
  opened_->Follow({"rxe0"}, now_ + 10s);
  EXPECT_TRUE(opened_->status().ok());
}

TEST_F(OpenedDevicesTest, ADeviceThatGivesNoEventsIsClosed) {
  opened_->Follow({"rxe0"}, now_);
  verbs_.FailNext("get_async_event", EIO);
  EXPECT_EQ(opened_->Take().value(), 1u);
  EXPECT_EQ(verbs_.LiveObjectCount(), 0);
  EXPECT_FALSE(opened_->status().ok());
}

TEST_F(OpenedDevicesTest, OnlyThoseWantedAreOpen) {
  Add("rxe1");
  opened_->Follow({"rxe0", "rxe1", "nosuch0"}, now_);
  EXPECT_EQ(verbs_.LiveObjectCount(), 2);
  opened_->Follow({"rxe1"}, now_);
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
}

}  // namespace
}  // namespace purser::plugin
