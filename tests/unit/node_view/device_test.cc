// SPDX-License-Identifier: Apache-2.0
#include "node_view/device.h"

#include <gtest/gtest.h>

namespace purser::node_view {
namespace {

using queue_memory::Provider;

TEST(DeviceTest, HasTheLimitsOfItsDriversKind) {
  const Device x722 = DeviceOf({.name = "i0",
                                .provider = Provider::kIrdma,
                                .driver = "i40e",
                                .uverbs = "uverbs3"},
                               4096);
  EXPECT_EQ(x722.name, "i0");
  EXPECT_EQ(x722.uverbs, "uverbs3");
  EXPECT_EQ(x722.limits.irdma.generation, 1u);
  EXPECT_EQ(x722.limits.page_size, 4096u);
  const Device unknown =
      DeviceOf({.name = "n0", .driver = "nothing_known"}, 65536);
  EXPECT_EQ(unknown.provider, Provider::kUnknown);
  EXPECT_EQ(unknown.limits.page_size, 65536u);
}

TEST(DeviceTest, EveryByteHasAName) {
  EXPECT_STREQ(QueuePairTypeName(0), "SMI");
  EXPECT_STREQ(QueuePairTypeName(1), "GSI");
  EXPECT_STREQ(QueuePairTypeName(2), "RC");
  EXPECT_STREQ(QueuePairTypeName(255), "DRIVER");
  EXPECT_STREQ(QueuePairStateName(0), "RESET");
  EXPECT_STREQ(QueuePairStateName(6), "ERR");
  for (int i = 0; i <= 255; ++i) {
    EXPECT_STRNE(QueuePairTypeName(static_cast<uint8_t>(i)), "");
  }
  for (int i = 7; i <= 255; ++i)
    EXPECT_STREQ(QueuePairStateName(static_cast<uint8_t>(i)), "UNKNOWN");
}

}  // namespace
}  // namespace purser::node_view
