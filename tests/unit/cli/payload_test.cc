// SPDX-License-Identifier: Apache-2.0
#include "cli/payload.h"

#include <gtest/gtest.h>

#include <vector>

namespace purser::cli {
namespace {

std::vector<std::byte> Filled(const Payload& payload, size_t size) {
  std::vector<std::byte> bytes(size);
  payload.Fill(bytes);
  return bytes;
}

TEST(PayloadTest, RecognisesItsOwnAtAnyLength) {
  for (size_t size : {0, 1, 7, 8, 9, 4096, 4099}) {
    const Payload payload(42, Lane::kThere, 3);
    EXPECT_EQ(payload.Mismatches(Filled(payload, size)), 0u) << size;
  }
}

TEST(PayloadTest, CountsEveryWrongByte) {
  const Payload payload(42, Lane::kThere, 3);
  auto bytes = Filled(payload, 1001);
  for (size_t at : {0, 500, 501, 1000}) bytes[at] ^= std::byte{1};
  EXPECT_EQ(payload.Mismatches(bytes), 4u);
}

TEST(PayloadTest, OtherSeedsLanesAndIndicesAreOther) {
  const auto bytes = Filled(Payload(42, Lane::kThere, 3), 4096);
  for (const Payload& other :
       {Payload(43, Lane::kThere, 3), Payload(42, Lane::kBack, 3),
        Payload(42, Lane::kThere, 2), Payload(42, Lane::kThere, 4)})
    EXPECT_GT(other.Mismatches(bytes), 4000u);
}

TEST(ChecksumTest, DependsOnContentAndOrder) {
  const auto a = Filled(Payload(1, Lane::kStream, 0), 100);
  const auto b = Filled(Payload(1, Lane::kStream, 1), 100);
  const auto sum = [](const auto& first, const auto& second) {
    Checksum checksum;
    checksum.Add(first);
    checksum.Add(second);
    return checksum.value();
  };
  EXPECT_EQ(sum(a, b), sum(a, b));
  EXPECT_NE(sum(a, b), sum(b, a));
  auto damaged = b;
  damaged.back() ^= std::byte{0x80};
  EXPECT_NE(sum(a, b), sum(a, damaged));
}

}  // namespace
}  // namespace purser::cli
