// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_watch.h"

#include <atomic>
#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/fakes/file_tree.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DeviceWatchTest : public ::testing::Test {
 protected:
  DeviceWatchTest() {
    Add();
    device_ = Device::Open(verbs_, "rxe0",
                           {.sysfs = tree_.path("sys"),
                            .dev = tree_.path("dev"),
                            .proc = tree_.path("proc")})
                  .value();
  }
  void Watch(std::chrono::milliseconds retry_every = 4ms) {
    watch_ = DeviceWatch::Start(*device_,
                                [this](const std::string& why) {
                                  why_lost_ = why;
                                  ++times_lost_;
                                },
                                {.look_every = 1ms, .retry_every = retry_every})
                 .value();
  }
  void Add() {
    verbs_.AddDevice(fakes::RxeDevice());
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  }
  void Remove(fakes::Removal removal = fakes::Removal::kZombie) {
    verbs_.RemoveDevice("rxe0", removal);
    sysfs_.RemoveDevice("rxe0");
  }
  bool BecomesOpen() {
    return Eventually([&] { return device_->Opened().ok(); });
  }
  bool BecomesLost(int times) {
    return Eventually([&] { return times_lost_ == times; });
  }
  std::string Why() {
    return std::string(device_->Opened().status().message());
  }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
  fakes::FakeVerbs verbs_;
  std::unique_ptr<Device> device_;
  std::string why_lost_;
  std::atomic<int> times_lost_ = 0;  // why_lost_ is set before it
  std::unique_ptr<DeviceWatch> watch_;
};

TEST_F(DeviceWatchTest, ARemovalEndsSinceTheDeviceIsClosedAndItsReturnOpensIt) {
  Watch();
  for (int round = 1; round <= 3; ++round) {
    Remove(round == 2 ? fakes::Removal::kDisassociate
                      : fakes::Removal::kZombie);
    ASSERT_TRUE(verbs_.AwaitRemoval("rxe0"));
    ASSERT_TRUE(BecomesLost(round));
    EXPECT_EQ(verbs_.LiveObjectCount(), 0);
    EXPECT_TRUE(absl::IsUnavailable(device_->Opened().status()));
    EXPECT_EQ(device_->traits().max_qp, 1048560u) << "as it was";
    EXPECT_TRUE(absl::IsUnavailable(device_->QueryPort().status()));
    EXPECT_TRUE(absl::IsUnavailable(device_->PreferredGid().status()));
    Add();
    ASSERT_TRUE(BecomesOpen());
    EXPECT_TRUE(device_->QueryPort().ok());
  }
  EXPECT_EQ(verbs_.LiveObjects()["context"], 1);
}

TEST_F(DeviceWatchTest, WhoUsesTheDeviceKeepsItOpenAndSeesThatItIsLost) {
  Watch();
  std::shared_ptr<OpenedDevice> used = device_->Opened().value();
  EXPECT_FALSE(used->lost());
  Remove();
  ASSERT_TRUE(BecomesLost(1));
  EXPECT_TRUE(used->lost());
  EXPECT_TRUE(verbs_.QueryPort(used->context().get(), 1).ok());
  used.reset();
  EXPECT_TRUE(verbs_.AwaitRemoval("rxe0"));
}

TEST_F(DeviceWatchTest, SaysWhyItIsLost) {
  Watch();
  Remove();
  ASSERT_TRUE(BecomesLost(1));
  EXPECT_THAT(Why(), AllOf(HasSubstr("device rxe0 was removed"),
                           HasSubstr("when it is back")));
}

TEST_F(DeviceWatchTest, WhatMayNotBeOpenedSaysToRestartThePod) {
  Watch();
  Remove();
  ASSERT_TRUE(verbs_.AwaitRemoval("rxe0"));
  verbs_.FailAlways("open_device", EPERM);
  Add();
  EXPECT_TRUE(Eventually([&] {
    return Why().find("uverbs1 may not be opened") != std::string::npos;
  }));
  EXPECT_THAT(Why(), AllOf(HasSubstr("device rxe0 is back, but cannot be used"),
                           HasSubstr("EPERM"), HasSubstr("delete the pod")));
  tree_.Remove("dev/infiniband/uverbs1");
  EXPECT_TRUE(Eventually([&] {
    return Why().find("uverbs1 is not in this container") != std::string::npos;
  }));
  verbs_.StopFailing("open_device");
  EXPECT_TRUE(BecomesOpen()) << "it is tried again and again";
}

TEST_F(DeviceWatchTest, AnotherProviderUnderTheSameNameIsNotTaken) {
  Watch();
  Remove();
  ASSERT_TRUE(verbs_.AwaitRemoval("rxe0"));
  verbs_.AddDevice(fakes::Mlx5Device("rxe0"));
  sysfs_.AddDevice(fakes::SysfsMlx5Vf("rxe0", "eth0"));
  EXPECT_TRUE(Eventually(
      [&] { return Why().find("is mlx5 now") != std::string::npos; }));
  EXPECT_EQ(verbs_.LiveObjects()["context"], 0);
}

TEST_F(DeviceWatchTest, OneThatIsStillThereAfterAFatalErrorIsTriedLater) {
  Watch(50ms);
  const uint64_t opened = verbs_.Calls("open_device");
  const auto begin = std::chrono::steady_clock::now();
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  ASSERT_TRUE(BecomesLost(1));
  EXPECT_THAT(why_lost_, HasSubstr("reported a fatal error"));
  EXPECT_TRUE(BecomesOpen());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
  EXPECT_EQ(verbs_.Calls("open_device"), opened + 1);
}

TEST_F(DeviceWatchTest, EndsWhileTheDeviceIsGone) {
  Watch();
  Remove();
  ASSERT_TRUE(BecomesLost(1));
  watch_.reset();
  Add();
  EXPECT_FALSE(device_->Opened().ok());
}

}  // namespace
}  // namespace purser::sidecar
