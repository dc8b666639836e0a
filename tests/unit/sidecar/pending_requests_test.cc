// SPDX-License-Identifier: Apache-2.0
#include "sidecar/pending_requests.h"

#include <set>

#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

TEST(PendingRequestsTest, GivesTheCallersIdAndTheDirectionBack) {
  PendingRequests pending;
  const uint64_t send = pending.Add({.wr_id = UINT64_MAX, .receive = false});
  const uint64_t receive = pending.Add({.wr_id = 0, .receive = true});
  EXPECT_NE(send, receive);
  EXPECT_EQ(pending.sends(), 1u);
  EXPECT_EQ(pending.receives(), 1u);

  const auto taken_receive = pending.Take(receive);
  ASSERT_TRUE(taken_receive.has_value());
  EXPECT_TRUE(taken_receive->receive);
  EXPECT_EQ(taken_receive->wr_id, 0u);
  const auto taken_send = pending.Take(send);
  ASSERT_TRUE(taken_send.has_value());
  EXPECT_FALSE(taken_send->receive);
  EXPECT_EQ(taken_send->wr_id, UINT64_MAX);
  EXPECT_EQ(pending.total(), 0u);
}

TEST(PendingRequestsTest, OrderOfCompletionDoesNotMatterAndSlotsAreReused) {
  PendingRequests pending;
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 3; ++i) keys.insert(pending.Add({.wr_id = i}));
  ASSERT_EQ(keys.size(), 3u);
  // The middle one first.
  const uint64_t middle = *std::next(keys.begin());
  EXPECT_EQ(pending.Take(middle)->wr_id, 1u);
  EXPECT_EQ(pending.Add({.wr_id = 7}), middle);
  EXPECT_EQ(pending.Take(*keys.begin())->wr_id, 0u);
  EXPECT_EQ(pending.Take(middle)->wr_id, 7u);
  EXPECT_EQ(pending.sends(), 1u);
}

TEST(PendingRequestsTest, KeysOfBeforeClearLeadNowhere) {
  PendingRequests pending;
  const uint64_t before = pending.Add({.wr_id = 1});
  pending.Clear();
  EXPECT_EQ(pending.total(), 0u);
  const uint64_t after = pending.Add({.wr_id = 2});
  EXPECT_NE(before, after);
  EXPECT_FALSE(pending.Take(before).has_value());
  EXPECT_FALSE(pending.Take(after + 1).has_value()) << "no such slot";
  EXPECT_EQ(pending.Take(after)->wr_id, 2u);
}

}  // namespace
}  // namespace purser::sidecar
