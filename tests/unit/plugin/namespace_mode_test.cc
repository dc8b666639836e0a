// SPDX-License-Identifier: Apache-2.0
#include "plugin/namespace_mode.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_rdma_netlink.h"

namespace purser::plugin {
namespace {

TEST(NamespaceModeTest, FollowsTheKernel) {
  fakes::FakeRdmaKernel kernel;
  NamespaceMode mode([&] { return kernel.Open(); });
  const std::vector<PoolConfig> pools = {PoolConfig{}};
  EXPECT_EQ(mode.known(), std::nullopt);
  EXPECT_FALSE(mode.IsExclusive(pools));
  EXPECT_EQ(mode.known(), rdma::NamespaceMode::kShared);
  kernel.SetMode(rdma::NamespaceMode::kExclusive);
  EXPECT_TRUE(mode.IsExclusive(pools));
  EXPECT_EQ(mode.known(), rdma::NamespaceMode::kExclusive);
}

TEST(NamespaceModeTest, WhatIsNotToldCountsAsShared) {
  fakes::FakeRdmaKernel kernel;
  kernel.SetMode(std::nullopt);
  NamespaceMode old([&] { return kernel.Open(); });
  EXPECT_FALSE(old.IsExclusive({}));
  EXPECT_EQ(old.known(), std::nullopt);
  NamespaceMode without(
      []() -> absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>> {
        return absl::UnimplementedError("no RDMA in this kernel");
      });
  EXPECT_FALSE(without.IsExclusive({}));
}

}  // namespace
}  // namespace purser::plugin
