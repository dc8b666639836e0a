// SPDX-License-Identifier: Apache-2.0
#include "node_view/mlx5_context.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/unit/node_view/mlx5_dump.h"

namespace purser::node_view {
namespace {

rdma::ResourceRecord Rc() {
  rdma::ResourceRecord record;
  record.local_qpn = kDumpedQpn;
  record.type = 2;
  record.remote_qpn = kDumpedRemoteQpn;
  return record;
}

TEST(Mlx5ContextTest, ReadsTheRings) {
  for (const size_t offset : {size_t{0}, size_t{24}}) {
    const auto dump = Mlx5Dump({.log_rq_size = 8,
                                .log_rq_stride = 1,
                                .log_sq_size = 10,
                                .context_offset = offset});
    const auto rings = ParseMlx5QueuePair(dump, Rc());
    ASSERT_TRUE(rings.has_value()) << offset;
    EXPECT_EQ(rings->send_bytes, 65536u);
    EXPECT_EQ(rings->receive_stride, 32u);
    EXPECT_EQ(rings->receive_bytes, 8192u);
  }
}

TEST(Mlx5ContextTest, RingsMayBeMissing) {
  const auto rings = ParseMlx5QueuePair(Mlx5Dump({.no_sq = true}), Rc());
  ASSERT_TRUE(rings.has_value());
  EXPECT_EQ(rings->send_bytes, 0u);
  EXPECT_EQ(rings->receive_bytes, 0u);
  EXPECT_EQ(rings->receive_stride, 0u);
}

TEST(Mlx5ContextTest, WhatDoesNotAgreeIsNotBelieved) {
  const auto dump = Mlx5Dump({.log_sq_size = 10});
  ASSERT_TRUE(ParseMlx5QueuePair(dump, Rc()).has_value());
  rdma::ResourceRecord other = Rc();
  other.local_qpn = kDumpedQpn + 1;
  EXPECT_FALSE(ParseMlx5QueuePair(dump, other).has_value());
  other = Rc();
  other.remote_qpn = kDumpedRemoteQpn + 1;
  EXPECT_FALSE(ParseMlx5QueuePair(dump, other).has_value());
  other = Rc();
  other.type = 4;  // UD
  EXPECT_FALSE(ParseMlx5QueuePair(dump, other).has_value());
  other.type = 255;
  EXPECT_FALSE(ParseMlx5QueuePair(dump, other).has_value());
  EXPECT_FALSE(ParseMlx5QueuePair({}, Rc()).has_value());
  EXPECT_FALSE(ParseMlx5QueuePair(Mlx5Dump({.log_sq_size = 10, .pd = 0}), Rc())
                   .has_value());
}

TEST(Mlx5ContextTest, TwoAnswersAreNone) {
  auto dump = Mlx5Dump({.log_sq_size = 10});
  const auto again = dump;
  dump.insert(dump.end(), again.begin(), again.end());
  EXPECT_FALSE(ParseMlx5QueuePair(dump, Rc()).has_value());
}

TEST(Mlx5ContextTest, SurvivesGarbage) {
  const auto whole = Mlx5Dump({.log_rq_size = 8, .log_sq_size = 10});
  std::mt19937 random(1);
  for (int round = 0; round < 50000; ++round) {
    std::vector<std::byte> bytes(whole.begin(),
                                 whole.begin() + random() % whole.size());
    for (int change = 0; change < 3 && !bytes.empty(); ++change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.shrink_to_fit();
    (void)ParseMlx5QueuePair(bytes, Rc());
  }
}

}  // namespace
}  // namespace purser::node_view
