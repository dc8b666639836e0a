// SPDX-License-Identifier: Apache-2.0
#include "planner/buffers.h"

#include "gtest/gtest.h"

namespace purser::planner {
namespace {

TEST(Buffers, InWords) {
  const auto buffers = ParseBuffers("64Mix8@4096");
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  EXPECT_EQ(buffers->bytes, 64u << 20);
  EXPECT_EQ(buffers->count, 8u);
  EXPECT_EQ(buffers->alignment, 4096u);
  for (const char* text :
       {"", "x8", "64Mix", "64Mix0", "64Mix65537", "64Mi@", "64Mi@0",
        "64Mi@3000", "64Mi@2147483648", "0", "65Ti", "64Mi@4096x8", "-1"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBuffers(text).status())) << text;
}

}  // namespace
}  // namespace purser::planner
