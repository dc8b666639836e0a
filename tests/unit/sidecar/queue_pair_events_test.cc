// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pair_events.h"

#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

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
