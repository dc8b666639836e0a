// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_events.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <future>

#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sidecar/brokered_completion_queue.h"
#include "sidecar/work_queue.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/fakes/file_tree.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class DeviceEventsTest : public ::testing::Test {
 protected:
  DeviceEventsTest() {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    verbs_.AddDevice(fakes::RxeDevice());
    device_ = OpenedDevice::Open(verbs_, "rxe0",
                                 {.sysfs = tree_.path("sys"),
                                  .dev = tree_.path("dev"),
                                  .proc = tree_.path("proc")},
                                 OpenedDevice::Occasion::kStart)
                  .value();
  }
  // What ends the reading, on another thread.
  std::future<std::optional<std::string>> Read(
      std::chrono::milliseconds look_every = std::chrono::hours(1)) {
    return std::async(std::launch::async, [this, look_every] {
      return DeviceEvents(*device_, stop_.get(), look_every).ReadUntilLost();
    });
  }
  void Stop() { eventfd_write(stop_.get(), 1); }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
  fakes::FakeVerbs verbs_;
  std::shared_ptr<OpenedDevice> device_;
  base::FileDescriptor stop_{eventfd(0, EFD_CLOEXEC)};
};

TEST_F(DeviceEventsTest, AFatalErrorEndsIt) {
  auto lost = Read();
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_PORT_ERR);
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  EXPECT_THAT(lost.get(), Optional(HasSubstr("rxe0 reported a fatal error")));
}

TEST_F(DeviceEventsTest, EventsThatCannotBeReadMeanTheDeviceIsLost) {
  verbs_.FailNext("get_async_event", EIO);
  auto lost = Read();
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_PORT_ERR);
  EXPECT_THAT(lost.get(), Optional(HasSubstr("no events any more")));
}

TEST_F(DeviceEventsTest, ASysfsEntryThatIsGoneEndsIt) {
  auto lost = Read(std::chrono::milliseconds(1));
  sysfs_.RemoveDevice("rxe0");
  EXPECT_THAT(lost.get(), Optional(HasSubstr("rxe0 was removed")));
}

TEST_F(DeviceEventsTest, SoDoesOneThatIsAnothersMeanwhile) {
  const std::filesystem::path entry = device_->uverbs()->path;
  sysfs_.RemoveDevice("rxe0");
  std::filesystem::create_directories(entry);
  EXPECT_THAT(Read().get(), Optional(HasSubstr("rxe0 was removed")));
}

TEST_F(DeviceEventsTest, AStopIsNoLoss) {
  auto lost = Read();
  Stop();
  EXPECT_EQ(lost.get(), std::nullopt);
}

TEST_F(DeviceEventsTest, EventsOfACompletionChannelThatFailsAreLeftAlone) {
  auto cq = BrokeredCompletionQueue::Create(device_, 1);
  ASSERT_TRUE(cq.ok());
  Occurrence taken;
  verbs_.Observe([&](std::string_view call) {
    if (call == "poll_cq") taken.Happen();
  });
  verbs_.FailAlways("get_cq_event", EIO);
  auto lost = Read();
  verbs_.RaiseCqEvent((*cq)->cq(), IBV_EVENT_CQ_ERR);
  EXPECT_TRUE(taken.Wait()) << "asynchronous events go on";
  Stop();
  EXPECT_EQ(lost.get(), std::nullopt);
  verbs_.Observe({});
  EXPECT_TRUE((*cq)->Close().ok());
}

}  // namespace
}  // namespace purser::sidecar
