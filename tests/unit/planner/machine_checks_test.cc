// SPDX-License-Identifier: Apache-2.0
#include "planner/machine_checks.h"

#include "gmock/gmock.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

// 100 queue pairs: 7.7 MiB of mlx5's, 10 MiB of soft-RoCE's.
class MachineChecks : public testing::Test {
 protected:
  MachineChecks() {
    machine_.memlock = base::MemlockLimit{};
    machine_.cgroup = base::CgroupMemory{.version = 2};
    machine_.node = base::NodeMemory{.total_bytes = 1000 * kMiB,
                                     .available_bytes = 900 * kMiB};
    machine_.huge_pages =
        base::HugePages{.page_bytes = 2 * kMiB, .free_pages = 5};
  }

  Finding Line(const std::string& check, std::string_view profile = "mlx5") {
    Workload workload = Read(Groups("- {name: a, count: 100}\n"));
    workload.pods_per_node = pods_;
    Plan plan = PlanOn(profile, workload);
    plan.device.counts.max_mr = 1000;
    for (const Finding& finding : MachineFindings(plan, demand_, machine_))
      if (finding.check == check) return finding;
    ADD_FAILURE() << "no line " << check;
    return {};
  }
  Level Of(const std::string& check, std::string_view profile = "mlx5") {
    return Line(check, profile).level;
  }
  void Add(std::string_view text) {
    const auto buffers = ParseBuffers(text);
    ASSERT_TRUE(buffers.ok()) << buffers.status();
    demand_.buffers.push_back(*buffers);
  }

  Demand demand_;
  Machine machine_;
  uint32_t pods_ = 1;
};

TEST_F(MachineChecks, AllIsWell) {
  for (const char* check :
       {"max_mr", "memlock", "cgroup_memory", "node_memory", "page_alignment",
        "page_crossing", "huge_pages", "budget"})
    EXPECT_EQ(Of(check), Level::kOk) << check;
}

TEST_F(MachineChecks, MemlockCountsRingsAndBuffers) {
  machine_.memlock = base::MemlockLimit{.soft_bytes = kMiB};
  EXPECT_EQ(Of("memlock"), Level::kFailure);
  EXPECT_THAT(Line("memlock").advice, HasSubstr("IPC_LOCK"));
  EXPECT_EQ(Of("memlock", "rxe"), Level::kOk);  // pins no rings
  Add("1Mi@4096");
  EXPECT_EQ(Of("memlock", "rxe"), Level::kOk);
  Add("1@4096");  // a whole page
  EXPECT_EQ(Of("memlock", "rxe"), Level::kFailure);
  machine_.memlock->ipc_lock = true;
  EXPECT_EQ(Of("memlock", "rxe"), Level::kOk);
}

TEST_F(MachineChecks, CgroupMemoryIsWhatIsLeftOfTheLimit) {
  machine_.cgroup =
      base::CgroupMemory{.current_bytes = 90 * kMiB, .max_bytes = 100 * kMiB};
  EXPECT_EQ(Of("cgroup_memory", "rxe"), Level::kOk);
  EXPECT_EQ(Of("cgroup_memory", "mlx5"), Level::kOk);
  Add("8Mi");
  EXPECT_EQ(Of("cgroup_memory", "mlx5"), Level::kFailure);
  EXPECT_THAT(Line("cgroup_memory", "mlx5").advice, HasSubstr("OOM-killed"));
  demand_.huge_pages = true;  // accounted elsewhere
  EXPECT_EQ(Of("cgroup_memory", "mlx5"), Level::kOk);
  demand_.huge_pages = false;
  machine_.cgroup =
      base::CgroupMemory{.current_bytes = 0, .max_bytes = 20 * kMiB};
  EXPECT_EQ(Of("cgroup_memory", "mlx5"), Level::kWarning);
}

TEST_F(MachineChecks, NodeMemory) {
  machine_.node->available_bytes = 16 * kMiB;
  EXPECT_EQ(Of("node_memory", "mlx5"), Level::kOk);
  EXPECT_EQ(Of("node_memory", "rxe"), Level::kWarning);
  machine_.node->available_bytes = kMiB;
  EXPECT_EQ(Of("node_memory", "rxe"), Level::kFailure);
  EXPECT_THAT(Line("node_memory", "rxe").advice, HasSubstr("systemReserved"));
}

TEST_F(MachineChecks, NodeMemoryHoldsWhatContainersAreChargedFor) {
  machine_.node->available_bytes = 7 * kMiB;
  EXPECT_EQ(Of("node_memory", "mlx5"), Level::kFailure);
  EXPECT_THAT(Line("node_memory", "mlx5").advice,
              HasSubstr("the node has not so much memory"));
  machine_.ring_allocator = "HUGE";
  EXPECT_EQ(Of("node_memory", "mlx5"), Level::kOk);
}

TEST_F(MachineChecks, NodeMemoryHoldsBuffers) {
  Add("100Mix8@4096");
  EXPECT_EQ(Of("node_memory"), Level::kOk);
  Add("100Mi@4096");
  EXPECT_EQ(Of("node_memory"), Level::kFailure);
  demand_.huge_pages = true;
  EXPECT_EQ(Of("node_memory"), Level::kOk);
}

// Of pods that run, what they take is not available.
TEST_F(MachineChecks, NodeMemoryOfAllPods) {
  Add("100Mix5@4096");
  pods_ = 2;
  machine_.node->total_bytes = 1100 * kMiB;
  EXPECT_EQ(Of("node_memory"), Level::kWarning);
  machine_.node->total_bytes = 1000 * kMiB;
  EXPECT_EQ(Of("node_memory"), Level::kFailure);
}

TEST_F(MachineChecks, WhatCannotBeReadIsAWarning) {
  machine_ = {};
  demand_.huge_pages = true;
  for (const char* check :
       {"memlock", "cgroup_memory", "node_memory", "huge_pages"}) {
    EXPECT_EQ(Of(check), Level::kWarning) << check;
    EXPECT_EQ(Line(check).found, "not read");
  }
}

TEST_F(MachineChecks, NothingIsWellWithWhatIsNotCounted) {
  const Plan plan =
      PlanOn("mlx5", Read(Groups("- {name: a, maxSendWr: 16384}\n")));
  for (const Finding& finding : MemoryFindings(plan, demand_, machine_)) {
    EXPECT_EQ(finding.level, Level::kWarning);
    EXPECT_THAT(finding.found, HasSubstr("is not counted"));
  }
}

TEST_F(MachineChecks, Budget) {
  EXPECT_THAT(Line("budget").advice, HasSubstr("request rdma/wqe-mib: "));
  demand_.budget = 64 * kMiB;
  EXPECT_EQ(Of("budget"), Level::kOk);
  demand_.budget = kMiB;
  EXPECT_EQ(Of("budget"), Level::kFailure);
  EXPECT_THAT(Line("budget").advice, HasSubstr("--fit 1048576"));
}

TEST_F(MachineChecks, MemoryRegions) {
  Add("4096x1000");
  EXPECT_EQ(Of("max_mr"), Level::kOk);
  Add("4096");
  EXPECT_EQ(Of("max_mr"), Level::kFailure);
}

TEST_F(MachineChecks, AlignmentAndPageCrossing) {
  Add("512@4096");
  EXPECT_EQ(Of("page_alignment"), Level::kOk);
  EXPECT_EQ(Of("page_crossing", "mlx4"), Level::kOk);
  Add("512");
  EXPECT_EQ(Of("page_alignment"), Level::kWarning);
  EXPECT_THAT(Line("page_alignment").found, HasSubstr("aligned to 16 bytes"));
  EXPECT_EQ(Of("page_crossing", "mlx4"), Level::kWarning);
  EXPECT_EQ(Of("page_crossing", "mlx5"), Level::kOk);
  demand_.buffers.clear();
  Add("500@512");  // never across the end of a page
  EXPECT_EQ(Of("page_crossing", "mlx4"), Level::kOk);
  Add("8192@8192");
  EXPECT_EQ(Of("page_crossing", "mlx4"), Level::kWarning);
}

TEST_F(MachineChecks, HugePages) {
  Add("10Mi@2097152");
  demand_.huge_pages = true;
  EXPECT_EQ(Of("huge_pages"), Level::kOk);
  Add("1@2097152");
  EXPECT_EQ(Of("huge_pages"), Level::kFailure);
  demand_ = {};
  machine_.huge_pages->free_pages = 1;
  machine_.ring_allocator = "HUGE";
  EXPECT_EQ(Of("huge_pages"), Level::kFailure);
  EXPECT_THAT(Line("huge_pages").found, HasSubstr("MLX_QP_ALLOC_TYPE=HUGE"));
  machine_.ring_allocator = "PREFER_HUGE";
  EXPECT_EQ(Of("huge_pages"), Level::kWarning);
  EXPECT_EQ(Of("huge_pages", "rxe"), Level::kOk);
}

// As many of the largest as there may be: no sum wraps.
TEST_F(MachineChecks, EnormousBuffers) {
  machine_.memlock = base::MemlockLimit{.soft_bytes = UINT64_MAX / 4};
  machine_.cgroup = base::CgroupMemory{.max_bytes = 100 * kMiB};
  demand_.huge_pages = true;
  for (int i = 0; i < 9; ++i) Add("64Tix65536");
  EXPECT_EQ(Of("memlock"), Level::kFailure);
  EXPECT_EQ(Of("huge_pages"), Level::kFailure);
  demand_.huge_pages = false;
  EXPECT_EQ(Of("cgroup_memory"), Level::kFailure);
  pods_ = 1000;
  EXPECT_EQ(Of("node_memory"), Level::kFailure);
}

}  // namespace
}  // namespace purser::planner
