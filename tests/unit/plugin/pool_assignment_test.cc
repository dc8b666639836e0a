// SPDX-License-Identifier: Apache-2.0
#include "plugin/pool_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

rdma::SysfsDevice Named(const std::string& name) {
  rdma::SysfsDevice device;
  device.name = name;
  return device;
}

PoolConfig Pool(const std::string& name, std::vector<Selectors> selectors,
                std::vector<Selectors> exclude = {}) {
  PoolConfig pool;
  pool.resource_name = name;
  pool.selectors = std::move(selectors);
  pool.exclude = std::move(exclude);
  return pool;
}

class AssignPoolsTest : public ::testing::Test {
 protected:
  PoolAssignment Assign(const std::vector<PoolConfig>& pools,
                        OverlapPolicy policy = OverlapPolicy::kFirstWins) {
    return AssignPools(pools, policy, {&a_, &b_, nullptr, &c_}, {});
  }

  const rdma::SysfsDevice a_ = Named("a"), b_ = Named("b"), c_ = Named("c");
};

TEST_F(AssignPoolsTest, AnyOfTheSelectorsAndNoneOfTheExcluded) {
  const PoolAssignment assignment =
      Assign({Pool("ab", {{.devices = {"a"}}, {.devices = {"b"}}}),
              Pool("rest", {}, {{.devices = {"[ab]"}}, {.devices = {"x"}}}),
              Pool("none", {{.devices = {"a"}}}, {{.devices = {"*"}}})});
  EXPECT_THAT(assignment.pools,
              UnorderedElementsAre(Pair("rdma/ab", ElementsAre(0, 1)),
                                   Pair("rdma/rest", ElementsAre(3)),
                                   Pair("rdma/none", IsEmpty())));
  EXPECT_THAT(assignment.overlaps, IsEmpty());
}

TEST_F(AssignPoolsTest, OverlapsAreFoundUnderEveryPolicy) {
  const std::vector<PoolConfig> pools = {Pool("all", {}),
                                         Pool("b", {{.devices = {"b"}}})};
  const std::vector<Overlap> overlaps = {{"b", "rdma/all", "rdma/b"}};

  const PoolAssignment first = Assign(pools, OverlapPolicy::kFirstWins);
  EXPECT_THAT(first.pools.at("rdma/all"), ElementsAre(0, 1, 3));
  EXPECT_THAT(first.pools.at("rdma/b"), IsEmpty());
  EXPECT_EQ(first.overlaps, overlaps);

  const PoolAssignment all = Assign(pools, OverlapPolicy::kAllow);
  EXPECT_THAT(all.pools.at("rdma/all"), ElementsAre(0, 1, 3));
  EXPECT_THAT(all.pools.at("rdma/b"), ElementsAre(1));
  EXPECT_EQ(all.overlaps, overlaps);

  const PoolAssignment refused = Assign(pools, OverlapPolicy::kRefuse);
  EXPECT_THAT(refused.pools.at("rdma/all"), ElementsAre(0, 3));
  EXPECT_THAT(refused.pools.at("rdma/b"), IsEmpty());
  EXPECT_EQ(refused.overlaps, overlaps);
}

TEST_F(AssignPoolsTest, WhatIsNotAdvertisedKeepsItsDevicesAllTheSame) {
  std::vector<PoolConfig> pools = {Pool("a", {{.devices = {"a"}}}),
                                   Pool("all", {})};
  pools[0].advertised = false;
  const PoolAssignment assignment = Assign(pools);
  EXPECT_THAT(assignment.pools,
              UnorderedElementsAre(Pair("rdma/all", ElementsAre(1, 3))));
}

}  // namespace
}  // namespace purser::plugin
