// SPDX-License-Identifier: Apache-2.0
#include "rdma/statistics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"

namespace purser::rdma {
namespace {

constexpr char kDevice[] = "class/infiniband/mlx5_0/";

TEST(DriverStatisticsTest, OfTheDeviceAndItsPorts) {
  fakes::FileTree tree;
  const std::string root = kDevice;
  tree.Write(root + "hw_counters/async_errors", "2\n");
  tree.Write(root + "ports/1/hw_counters/out_of_buffer",
             "18446744073709551615\n");
  tree.Write(root + "ports/1/hw_counters/lifespan", "10\n");
  tree.Write(root + "ports/1/hw_counters/odd", "N/A\n");
  tree.Write(root + "ports/2/state", "4: ACTIVE\n");
  const auto statistics = DriverStatistics(tree.root(), "mlx5_0");
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  ASSERT_EQ(statistics->size(), 2u);
  EXPECT_EQ((*statistics)[0].port_num, 0);
  EXPECT_EQ((*statistics)[0].name, "async_errors");
  EXPECT_EQ((*statistics)[0].value, 2u);
  EXPECT_EQ((*statistics)[1].port_num, 1);
  EXPECT_EQ((*statistics)[1].value, UINT64_MAX);
}

TEST(DriverStatisticsTest, FailureIsNotAbsence) {
  fakes::FileTree tree;
  EXPECT_TRUE(
      absl::IsNotFound(DriverStatistics(tree.root(), "mlx5_0").status()));
  tree.Write(std::string(kDevice) + "ports/1/hw_counters", "no directory");
  const auto statistics = DriverStatistics(tree.root(), "mlx5_0");
  EXPECT_FALSE(statistics.ok());
  EXPECT_FALSE(absl::IsNotFound(statistics.status()));
}

}  // namespace
}  // namespace purser::rdma
