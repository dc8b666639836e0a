// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_events.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "sidecar/queue_pair_events.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

class DeviceEventsTest : public ::testing::Test {
 protected:
  DeviceEventsTest() {
    verbs_.AddDevice(fakes::RxeDevice());
    context_ = rdma::OpenDevice(verbs_, "rxe0").value();
  }
  std::unique_ptr<DeviceEvents> Start() {
    return DeviceEvents::Start(verbs_, context_, "rxe0",
                               [this] {
                                 ++times_lost_;
                                 lost_.Happen();
                               })
        .value();
  }

  fakes::FakeVerbs verbs_;
  rdma::Context context_;
  Occurrence lost_;
  std::atomic<int> times_lost_ = 0;
};

TEST_F(DeviceEventsTest, AFailedStartLeavesNothing) {
  verbs_.FailNext("create_comp_channel", EMFILE);
  const auto started = DeviceEvents::Start(verbs_, context_, "rxe0", [] {});
  EXPECT_EQ(rdma::ErrnoOf(started.status()), EMFILE);
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
}

TEST_F(DeviceEventsTest, ALostDeviceIsToldOnce) {
  const auto events = Start();
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  EXPECT_TRUE(lost_.Wait());
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_PORT_ERR);
  EXPECT_TRUE(Eventually([&] { return verbs_.Calls("get_async_event") >= 3; }));
  EXPECT_EQ(times_lost_, 1);
}

TEST_F(DeviceEventsTest, EventsThatCannotBeReadMeanTheDeviceIsLost) {
  verbs_.FailNext("get_async_event", EIO);
  const auto events = Start();
  verbs_.RaiseAsyncEvent("rxe0", IBV_EVENT_PORT_ERR);
  EXPECT_TRUE(lost_.Wait());
}

TEST_F(DeviceEventsTest, EventsOfACompletionChannelThatFailsAreLeftAlone) {
  const auto events = Start();
  auto sink = std::make_shared<QueuePairEvents>();
  auto cq = rdma::CreateCq(verbs_, context_, 1, sink.get(), events->channel());
  ASSERT_TRUE(cq.ok());
  Occurrence told;
  sink->Subscribe([&] { told.Happen(); });
  verbs_.FailAlways("get_cq_event", EIO);
  verbs_.RaiseCqEvent(cq->get(), IBV_EVENT_CQ_ERR);
  EXPECT_TRUE(told.Wait()) << "asynchronous events go on";
  EXPECT_EQ(times_lost_, 0);
}

TEST(QueuePairEventsTest, SubscribersComeAndGoFromWithinAnEvent) {
  auto events = std::make_shared<QueuePairEvents>();
  int first = 0, second = 0;
  uint64_t subscription = 0;
  subscription = events->Subscribe([&] {
    ++first;
    events->Unsubscribe(subscription);
    events->Subscribe([&] { ++second; });
  });
  events->CompletionEvent();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  events->CompletionEvent();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  events->Close();
  EXPECT_EQ(second, 2);
  events->CompletionEvent();
  EXPECT_EQ(second, 2);
}

}  // namespace
}  // namespace purser::sidecar
