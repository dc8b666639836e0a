// SPDX-License-Identifier: Apache-2.0
#include "node_view/ring_mapping.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace purser::node_view {
namespace {

constexpr char kRecorded[] =
    "7f2b34a00000-7f2b34e01000 rw-s 00003000 00:06 211                        "
    "/dev/infiniband/uverbs0";

TEST(RingMappingTest, ReadsALineAsTheKernelWritesIt) {
  const auto mapping = ParseRingMapping(kRecorded);
  ASSERT_TRUE(mapping.has_value());
  EXPECT_EQ(mapping->bytes(), 4198400u);
  EXPECT_EQ(mapping->start, 0x7f2b34a00000u);
  EXPECT_EQ(mapping->offset, 0x3000u);
  EXPECT_EQ(mapping->uverbs, "uverbs0");
}

TEST(RingMappingTest, TheDeviceMayBeMountedElsewhereOrBeRemoved) {
  EXPECT_EQ(ParseRingMapping("1000-2000 rw-s 0 00:06 2 "
                             "/host/dev/infiniband/uverbs12")
                ->uverbs,
            "uverbs12");
  EXPECT_EQ(ParseRingMapping("1000-2000 rw-s 0 00:06 2 "
                             "/dev/infiniband/uverbs0 (deleted)")
                ->uverbs,
            "uverbs0");
}

TEST(RingMappingTest, OtherLinesAreNone) {
  for (const char* line :
       {"", "7ffc1f1e0000-7ffc1f201000 rw-p 00000000 00:00 0 [stack]",
        "1000-2000 rw-s 0 00:06 2 /dev/infiniband/rdma_cm",
        "1000-2000 rw-s 0 00:06 2 /dev/infiniband/uverbs",
        "1000-2000 rw-s 0 00:06 2 /dev/infiniband/uverbs0x",
        "1000-2000 rw-s 0 00:06 2 /tmp/uverbs0",
        "1000-2000 rw-s 0 00:06 2 /dev/infiniband/uverbs0/x",
        "2000-1000 rw-s 0 00:06 2 /dev/infiniband/uverbs0",
        "1000 rw-s 0 00:06 2 /dev/infiniband/uverbs0",
        "x-y rw-s 0 00:06 2 /dev/infiniband/uverbs0",
        "1000-2000 rw-s zero 00:06 2 /dev/infiniband/uverbs0",
        "/dev/infiniband/uverbs0"})
    EXPECT_FALSE(ParseRingMapping(line).has_value()) << line;
}

TEST(RingMappingTest, SurvivesGarbage) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string line = kRecorded;
    for (int change = 0; change < 4; ++change)
      line[random() % line.size()] = static_cast<char>(random());
    line.resize(random() % (line.size() + 1));
    (void)ParseRingMapping(line);
  }
}

}  // namespace
}  // namespace purser::node_view
