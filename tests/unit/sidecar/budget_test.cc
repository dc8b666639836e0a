// SPDX-License-Identifier: Apache-2.0
#include "sidecar/budget.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

base::CgroupMemory Limit(std::optional<uint64_t> max_bytes) {
  return {.version = 2,
          .path = "/sys/fs/cgroup",
          .current_bytes = 4096,
          .max_bytes = max_bytes,
          .max_origin = "/sys/fs/cgroup/memory.max"};
}

BudgetInputs Given(std::optional<uint64_t> explicit_bytes,
                   std::optional<std::string> plugin_bytes) {
  BudgetInputs inputs;
  inputs.explicit_bytes = explicit_bytes;
  inputs.plugin_bytes = plugin_bytes;
  inputs.cgroup = Limit(std::nullopt);
  inputs.memlock = base::MemlockLimit{};
  return inputs;
}

std::string Message(const BudgetInputs& inputs) {
  return std::string(DetermineBudget(inputs).status().message());
}

TEST(DetermineBudget, TakesTheExplicitFigureForAllBytes) {
  const auto budget = DetermineBudget(Given(64 * kMiB, std::nullopt));
  ASSERT_TRUE(budget.ok()) << budget.status();
  ASSERT_NE(budget->total_bound(), nullptr);
  EXPECT_EQ(budget->total_bound()->limit_bytes, 64 * kMiB);
  EXPECT_EQ(budget->total_bound()->source, BudgetSource::kExplicit);
  EXPECT_EQ(budget->total_bound()->origin, "--budget");
  EXPECT_EQ(budget->container_bound(), nullptr);
}

TEST(DetermineBudget, TakesWhatThePluginAllocated) {
  const auto budget = DetermineBudget(Given(std::nullopt, "67108864"));
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->total_bound()->limit_bytes, 64 * kMiB);
  EXPECT_EQ(budget->total_bound()->source, BudgetSource::kPlugin);
  EXPECT_EQ(budget->total_bound()->origin, "PURSER_QUEUE_MEMORY_BYTES");
}

TEST(DetermineBudget, KeepsBothFiguresAndTheSmallerDecides) {
  const auto budget = DetermineBudget(Given(32 * kMiB, "67108864"));
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->bounds().size(), 2u);
  EXPECT_EQ(budget->total_bound()->source, BudgetSource::kExplicit);
  EXPECT_EQ(budget->total_bound()->limit_bytes, 32 * kMiB);
}

TEST(DetermineBudget, RefusesAnExplicitFigureAboveThePlugins) {
  const BudgetInputs inputs = Given(128 * kMiB, "67108864");
  EXPECT_TRUE(absl::IsInvalidArgument(DetermineBudget(inputs).status()));
  EXPECT_THAT(
      Message(inputs),
      AllOf(HasSubstr("--budget 128 MiB (134,217,728 bytes) is more than the "
                      "64 MiB (67,108,864 bytes) that the device plugin "
                      "allocated"),
            HasSubstr("64 units of rdma/wqe-mib"), HasSubstr("lower it")));
}

TEST(DetermineBudget, TakesEqualExplicitAndPluginFigures) {
  EXPECT_TRUE(DetermineBudget(Given(64 * kMiB, "67108864")).ok());
}

TEST(DetermineBudget, NamesTheConfigFileWhereTheFigureWasThere) {
  BudgetInputs inputs = Given(128 * kMiB, "67108864");
  inputs.explicit_origin = "budget in /etc/purser/sidecar.yaml";
  EXPECT_THAT(Message(inputs),
              HasSubstr("budget in /etc/purser/sidecar.yaml 128 MiB"));
}

TEST(DetermineBudget, RefusesGarbledEnvironmentAndNamesIt) {
  for (const char* text : {"", "64Mi", " 67108864", "67108864 ", "-1", "0",
                           "0x10", "1e9", "99999999999999999999999"}) {
    SCOPED_TRACE(text);
    const BudgetInputs inputs = Given(std::nullopt, text);
    EXPECT_TRUE(absl::IsInvalidArgument(DetermineBudget(inputs).status()));
    EXPECT_THAT(Message(inputs),
                AllOf(HasSubstr("PURSER_QUEUE_MEMORY_BYTES is \"" +
                                std::string(text) + "\""),
                      HasSubstr("whole number of bytes")));
  }
}

TEST(DetermineBudget, ReportsAllFaultsAtOnce) {
  const std::string message = Message(Given(0, "many"));
  EXPECT_THAT(message, HasSubstr("--budget is 0 bytes"));
  EXPECT_THAT(message, HasSubstr("PURSER_QUEUE_MEMORY_BYTES is \"many\""));
}

TEST(DetermineBudget, HalfOfTheMemoryLimitBoundsContainerBytes) {
  BudgetInputs inputs = Given(std::nullopt, std::nullopt);
  inputs.cgroup = Limit(100 * kMiB);
  const auto budget = DetermineBudget(inputs);
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->total_bound(), nullptr);
  ASSERT_NE(budget->container_bound(), nullptr);
  EXPECT_EQ(budget->container_bound()->limit_bytes, 50 * kMiB);
  EXPECT_EQ(budget->container_bound()->source, BudgetSource::kCgroup);
  EXPECT_EQ(budget->container_bound()->origin,
            "half of /sys/fs/cgroup/memory.max");
}

TEST(DetermineBudget, AnotherFractionIsNamedByItsNumber) {
  BudgetInputs inputs = Given(std::nullopt, std::nullopt);
  inputs.cgroup = Limit(100 * kMiB);
  inputs.memory_limit_fraction = 0.3;
  const auto budget = DetermineBudget(inputs);
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->container_bound()->origin,
            "0.3 of /sys/fs/cgroup/memory.max");
  EXPECT_EQ(budget->container_bound()->limit_bytes, 31457280u);
}

TEST(DetermineBudget, TheMemoryLimitDoesNotCoverNodeMemory) {
  BudgetInputs inputs = Given(std::nullopt, std::nullopt);
  inputs.cgroup = Limit(100 * kMiB);
  inputs.charges_node = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(DetermineBudget(inputs).status()));
  EXPECT_THAT(Message(inputs),
              AllOf(HasSubstr("no container limit covers"),
                    HasSubstr("request rdma/wqe-mib"), HasSubstr("--budget"),
                    HasSubstr("config file"), HasSubstr("--budget: not given"),
                    HasSubstr("PURSER_QUEUE_MEMORY_BYTES: not set")));
}

TEST(DetermineBudget, NodeMemoryIsCoveredByEitherFigureAndKeepsTheCgroup) {
  for (const BudgetInputs& given :
       {Given(kMiB, std::nullopt), Given(std::nullopt, "1048576")}) {
    BudgetInputs inputs = given;
    inputs.cgroup = Limit(100 * kMiB);
    inputs.charges_node = true;
    const auto budget = DetermineBudget(inputs);
    ASSERT_TRUE(budget.ok()) << budget.status();
    EXPECT_EQ(budget->total_bound()->limit_bytes, kMiB);
    EXPECT_EQ(budget->container_bound()->limit_bytes, 50 * kMiB);
  }
}

TEST(DetermineBudget, AnUnlimitedCgroupIsNoBound) {
  const BudgetInputs inputs = Given(std::nullopt, std::nullopt);
  EXPECT_TRUE(absl::IsFailedPrecondition(DetermineBudget(inputs).status()));
  EXPECT_THAT(Message(inputs),
              AllOf(HasSubstr("memory limit of /sys/fs/cgroup: none"),
                    HasSubstr("give the container a memory limit"),
                    HasSubstr("--budget")));
}

TEST(DetermineBudget, AnUnreadableCgroupIsAGapWhereAnotherSourceCovers) {
  BudgetInputs inputs = Given(kMiB, std::nullopt);
  inputs.cgroup =
      absl::PermissionDeniedError("/sys/fs/cgroup/memory.max: EACCES");
  const auto budget = DetermineBudget(inputs);
  ASSERT_TRUE(budget.ok()) << budget.status();
  ASSERT_EQ(budget->gaps().size(), 1u);
  EXPECT_THAT(budget->gaps()[0],
              HasSubstr("/sys/fs/cgroup/memory.max: EACCES"));
}

TEST(DetermineBudget, AnUnreadableCgroupAloneIsNoBudgetAndSaysWhy) {
  BudgetInputs inputs = Given(std::nullopt, std::nullopt);
  inputs.cgroup =
      absl::PermissionDeniedError("/sys/fs/cgroup/memory.max: EACCES");
  EXPECT_TRUE(absl::IsFailedPrecondition(DetermineBudget(inputs).status()));
  EXPECT_THAT(Message(inputs), HasSubstr("/sys/fs/cgroup/memory.max: EACCES"));
}

TEST(DetermineBudget, MemlockBoundsWhereRingsArePinned) {
  BudgetInputs inputs = Given(64 * kMiB, std::nullopt);
  inputs.memlock = base::MemlockLimit{.soft_bytes = 8 * kMiB};
  EXPECT_EQ(DetermineBudget(inputs)->container_bound(), nullptr);

  inputs.pins_rings = true;
  const auto budget = DetermineBudget(inputs);
  ASSERT_TRUE(budget.ok()) << budget.status();
  ASSERT_NE(budget->container_bound(), nullptr);
  EXPECT_EQ(budget->container_bound()->source, BudgetSource::kMemlock);
  EXPECT_EQ(budget->container_bound()->limit_bytes, 8 * kMiB);
  EXPECT_THAT(budget->gaps(), IsEmpty());
}

TEST(DetermineBudget, MemlockDoesNotBindWithTheCapabilityOrWithoutLimit) {
  BudgetInputs inputs = Given(64 * kMiB, std::nullopt);
  inputs.pins_rings = true;
  for (const base::MemlockLimit& limit :
       {base::MemlockLimit{.soft_bytes = kMiB, .ipc_lock = true},
        base::MemlockLimit{}}) {
    inputs.memlock = limit;
    const auto budget = DetermineBudget(inputs);
    ASSERT_TRUE(budget.ok()) << budget.status();
    EXPECT_EQ(budget->container_bound(), nullptr);
  }
}

TEST(DetermineBudget, UnreadableMemlockIsAGapOnlyWhereRingsArePinned) {
  BudgetInputs inputs = Given(64 * kMiB, std::nullopt);
  inputs.memlock = absl::NotFoundError("/proc/self/limits");
  EXPECT_THAT(DetermineBudget(inputs)->gaps(), IsEmpty());
  inputs.pins_rings = true;
  EXPECT_THAT(DetermineBudget(inputs)->gaps(), Not(IsEmpty()));
}

TEST(DetermineBudget, TheSmallerOfCgroupAndMemlockDecides) {
  BudgetInputs inputs = Given(std::nullopt, std::nullopt);
  inputs.pins_rings = true;
  inputs.cgroup = Limit(100 * kMiB);
  inputs.memlock = base::MemlockLimit{.soft_bytes = 51 * kMiB};
  EXPECT_EQ(DetermineBudget(inputs)->container_bound()->source,
            BudgetSource::kCgroup);
  inputs.memlock = base::MemlockLimit{.soft_bytes = 49 * kMiB};
  EXPECT_EQ(DetermineBudget(inputs)->container_bound()->source,
            BudgetSource::kMemlock);
}

TEST(BudgetSourceName, AreTheMetricsLabels) {
  EXPECT_STREQ(BudgetSourceName(BudgetSource::kExplicit), "explicit");
  EXPECT_STREQ(BudgetSourceName(BudgetSource::kPlugin), "plugin");
  EXPECT_STREQ(BudgetSourceName(BudgetSource::kCgroup), "cgroup");
  EXPECT_STREQ(BudgetSourceName(BudgetSource::kMemlock), "memlock");
}

TEST(QueuePairBudget, IsWhatThePluginAllotted) {
  BudgetInputs inputs = Given(64 * kMiB, std::nullopt);
  EXPECT_FALSE(DetermineBudget(inputs)->queue_pairs().has_value());
  inputs.plugin_queue_pairs = "100";
  const auto budget = DetermineBudget(inputs);
  ASSERT_TRUE(budget.ok()) << budget.status();
  ASSERT_TRUE(budget->queue_pairs().has_value());
  EXPECT_EQ(budget->queue_pairs()->limit, 100u);
  for (const char* wrong :
       {"", "0", "-1", "ten", "1.5", "18446744073709551616"}) {
    inputs.plugin_queue_pairs = wrong;
    const absl::Status status = DetermineBudget(inputs).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_NE(status.message().find("PURSER_QUEUE_PAIRS"),
              absl::string_view::npos);
  }
}

TEST(Overcommitted, IsTheMostThatAnyBoundMisses) {
  BudgetInputs inputs = Given(10, std::nullopt);
  inputs.cgroup = base::CgroupMemory{
      .version = 2, .max_bytes = 8, .max_origin = "memory.max"};
  const Budget budget = DetermineBudget(inputs).value();
  const auto held = [](uint64_t container, uint64_t node) {
    return ledger::Balance{.held = {.container = container, .node = node}};
  };
  EXPECT_EQ(OvercommittedBytes(budget, held(4, 6)), 0u);
  EXPECT_EQ(OvercommittedBytes(budget, held(4, 7)), 1u);
  EXPECT_EQ(OvercommittedBytes(budget, held(7, 0)), 3u);
  EXPECT_EQ(OvercommittedBytes(budget, held(7, 8)), 5u);
}

}  // namespace
}  // namespace purser::sidecar
