// SPDX-License-Identifier: Apache-2.0
#include "node_view/undeclared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace purser::node_view {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

constexpr uint64_t kMib = 1 << 20;

Holding Held(const std::string& device, const std::string& pod, uint64_t node,
             uint64_t container = 0) {
  Holding holding{.device = device,
                  .kind = OwnerKind::kContainer,
                  .owner = {"ns", pod, "app"},
                  .named = true};
  holding.bytes.node.exact = node;
  holding.bytes.container.estimated = container;
  return holding;
}

Holding Of(OwnerKind kind, uint64_t bytes) {
  Holding holding{.device = "rxe0", .kind = kind};
  holding.bytes.node.exact = bytes;
  return holding;
}

Allocation Units(const std::string& pod, const std::string& resource,
                 uint64_t units) {
  return {{"ns", pod, "app"}, resource, units};
}

std::optional<std::map<std::string, uint64_t>> Undeclared(
    const std::vector<Holding>& holdings,
    const std::vector<Allocation>& allocations) {
  return UndeclaredBytes(holdings, allocations, QueueMemoryUnitBytes);
}

TEST(UndeclaredTest, IsWhatIsHeldBeyondTheUnits) {
  EXPECT_THAT(Undeclared({}, {}), Optional(IsEmpty()));
  EXPECT_THAT(
      Undeclared({Held("rxe0", "a", 3 * kMib, 5)},
                 {Units("a", "rdma/wqe-mib", 2), Units("a", "rdma/hca", 100),
                  Units("b", "rdma/wqe-mib", 100)}),
      Optional(ElementsAre(Pair("rxe0", kMib + 5))));
  EXPECT_THAT(Undeclared({Held("rxe0", "a", 3 * kMib)},
                         {Units("a", "rdma/wqe-mib", 1),
                          Units("a", "rdma/wqe-2mib", 1)}),
              Optional(ElementsAre(Pair("rxe0", 0))));
}

TEST(UndeclaredTest, WhatOneLeavesCoversNoOther) {
  EXPECT_THAT(Undeclared({Held("rxe0", "a", kMib), Held("rxe0", "b", 7)},
                         {Units("a", "rdma/wqe-mib", 50)}),
              Optional(ElementsAre(Pair("rxe0", 7))));
}

TEST(UndeclaredTest, AnExcessIsSharedOutOverTheDevices) {
  EXPECT_THAT(
      Undeclared({Held("mlx5_0", "a", kMib), Held("mlx5_1", "a", 2 * kMib)},
                 {Units("a", "rdma/wqe-mib", 2)}),
      Optional(ElementsAre(Pair("mlx5_0", 349525), Pair("mlx5_1", 699051))));
  const uint64_t huge = UINT64_MAX / 4;
  EXPECT_THAT(Undeclared({Held("a0", "a", huge), Held("b0", "a", huge)}, {}),
              Optional(ElementsAre(Pair("a0", huge), Pair("b0", huge))));
}

TEST(UndeclaredTest, HostProcessesDeclareNothingAndTheKernelIsNotAsked) {
  EXPECT_THAT(Undeclared({Of(OwnerKind::kHost, 10), Of(OwnerKind::kKernel, 100),
                          Of(OwnerKind::kUnknown, 3)},
                         {}),
              Optional(ElementsAre(Pair("rxe0", 13))));
}

TEST(UndeclaredTest, IsNotClaimedWhereOwnersCannotBeTold) {
  EXPECT_EQ(Undeclared({Of(OwnerKind::kUnknown, 3)}, {}), std::nullopt);
  Holding unnamed = Held("rxe0", "1b4e28ba", 7);
  unnamed.named = false;
  EXPECT_EQ(Undeclared({unnamed}, {Units("a", "rdma/wqe-mib", 1)}),
            std::nullopt)
      << "the units may be its";
  EXPECT_THAT(Undeclared({unnamed}, {Units("a", "rdma/hca", 1)}),
              Optional(ElementsAre(Pair("rxe0", 7))));
}

}  // namespace
}  // namespace purser::node_view
