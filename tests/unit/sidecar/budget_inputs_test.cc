// SPDX-License-Identifier: Apache-2.0
#include "sidecar/budget_inputs.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"

namespace purser::sidecar {
namespace {

using queue_memory::Provider;

class BudgetInputsTest : public ::testing::Test {
 protected:
  BudgetInputsTest() {
    config_.proc_root = tree_.path("proc");
    config_.cgroup_root = tree_.path("cgroup");
    tree_.Write("proc/self/cgroup", "0::/\n");
    tree_.Write("proc/self/mountinfo", "");
    tree_.Write("proc/self/limits",
                "Limit                     Soft Limit           Hard Limit     "
                "      Units     \n"
                "Max locked memory         8388608              8388608        "
                "      bytes     \n");
    tree_.Write("proc/self/status", "CapEff:\t0000000000000000\n");
    tree_.Write("cgroup/cgroup.controllers", "memory\n");
    tree_.Write("cgroup/memory.current", "4096\n");
    tree_.Write("cgroup/memory.max", "104857600\n");
  }

  BudgetInputs Read(const std::vector<DeviceTraits>& devices,
                    Environment environment = {}) {
    return ReadBudgetInputs(config_, environment, devices);
  }

  fakes::FileTree tree_;
  Config config_;
};

TEST_F(BudgetInputsTest, ReadsTheLimitsOfThisProcess) {
  const BudgetInputs inputs =
      Read({}, {.queue_memory_bytes = "123", .queue_pairs = "4"});
  ASSERT_TRUE(inputs.cgroup.ok()) << inputs.cgroup.status();
  EXPECT_EQ(inputs.cgroup->max_bytes, 104857600u);
  ASSERT_TRUE(inputs.memlock.ok()) << inputs.memlock.status();
  EXPECT_EQ(inputs.memlock->soft_bytes, 8388608u);
  EXPECT_EQ(inputs.plugin_bytes, "123");
  EXPECT_EQ(inputs.plugin_queue_pairs, "4");
  EXPECT_EQ(inputs.explicit_bytes, std::nullopt);
  EXPECT_EQ(inputs.memory_limit_fraction, 0.5);
}

TEST_F(BudgetInputsTest, ReadsWhatPressureIsJudgedBy) {
  tree_.Write("cgroup/memory.stat", "inactive_file 96\n");
  EXPECT_EQ(ReadContainerUsage(config_)->working_set_bytes, 4000u);
  EXPECT_EQ(ReadContainerUsage(config_)->limit_bytes, 104857600u);
  EXPECT_FALSE(ReadNodeUsage(config_).ok());
  tree_.Write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 40 kB\n");
  ASSERT_TRUE(ReadNodeUsage(config_).ok());
  EXPECT_EQ(ReadNodeUsage(config_)->available_bytes, 40960u);
  EXPECT_FALSE(ReadNodeUsage(config_)->stall.has_value());
  tree_.Write("proc/pressure/memory",
              "some avg10=1.00 total=0\nfull avg10=0.50 total=0\n");
  EXPECT_EQ(ReadNodeUsage(config_)->stall->full_avg10, 0.5);
}

TEST_F(BudgetInputsTest, KeepsTheErrorsOfWhatCannotBeRead) {
  config_.proc_root = tree_.path("nowhere");
  config_.cgroup_root = tree_.path("nowhere");
  const BudgetInputs inputs = Read({});
  EXPECT_FALSE(inputs.cgroup.ok());
  EXPECT_FALSE(inputs.memlock.ok());
}

TEST_F(BudgetInputsTest, TakesTheConfigsFigureAndItsOrigin) {
  config_.budget_bytes = 5;
  config_.budget_origin = "budget in x.yaml";
  config_.memory_limit_fraction = 0.25;
  const BudgetInputs inputs = Read({});
  EXPECT_EQ(inputs.explicit_bytes, 5u);
  EXPECT_EQ(inputs.explicit_origin, "budget in x.yaml");
  EXPECT_EQ(inputs.memory_limit_fraction, 0.25);
}

TEST_F(BudgetInputsTest, WhoPaysComesFromTheModel) {
  const DeviceTraits rxe = {.name = "rxe0", .provider = Provider::kRxe};
  const DeviceTraits mlx5 = {.name = "mlx5_0", .provider = Provider::kMlx5};
  const DeviceTraits unknown = {.name = "acme0"};
  EXPECT_FALSE(Read({}).charges_node);
  EXPECT_TRUE(Read({rxe}).charges_node);
  EXPECT_FALSE(Read({rxe}).pins_rings);
  EXPECT_FALSE(Read({mlx5}).charges_node);
  EXPECT_TRUE(Read({mlx5}).pins_rings);
  const DeviceTraits efa = {.name = "efa_0", .provider = Provider::kEfa};
  EXPECT_TRUE(Read({efa}).charges_node) << "although it has no RC queue pairs";
  EXPECT_TRUE(Read({unknown}).charges_node) << "not known: the safe answer";
  EXPECT_TRUE(Read({mlx5, rxe}).charges_node);
  EXPECT_TRUE(Read({mlx5, rxe}).pins_rings);
}

}  // namespace
}  // namespace purser::sidecar
