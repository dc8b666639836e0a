// SPDX-License-Identifier: Apache-2.0
//
// The worked examples in docs/examples/, with the figures that docs/planning.md
// shows.
#include <string>
#include <utility>

#include "base/strict_yaml.h"
#include "gmock/gmock.h"
#include "planner/report.h"
#include "tests/fakes/paths.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

Workload Example(const std::string& name) {
  const auto text = base::ReadFile(fakes::SourcePath("docs/examples/" + name));
  EXPECT_TRUE(text.ok()) << text.status();
  auto workload = ReadWorkload(name, text.value_or(""));
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

struct Figures {
  const char* example;
  const char* profile;
  uint64_t each;   // bytes of the first group's queue pair
  uint64_t units;  // of a pod
};

TEST(ExamplesTest, FiguresAreThoseOfTheDocumentation) {
  for (const Figures& figures : {
           Figures{"storage-gateway.yaml", "mlx5", 155'336, 152},
           {"storage-gateway.yaml", "rxe", 439'080, 429},
           {"bulk-mover.yaml", "mlx5", 3'770'056, 58},
           {"bulk-mover.yaml", "rxe", 6'849'320, 105},
           {"low-latency.yaml", "mlx5", 60'104, 4},
           {"low-latency.yaml", "rxe", 226'088, 14},
       }) {
    const Workload workload = Example(figures.example);
    const Plan plan = PlanOn(figures.profile, workload);
    EXPECT_TRUE(plan.refusals.empty()) << figures.example;
    EXPECT_EQ(plan.groups[0].each.total().total(), figures.each)
        << figures.example << " on " << figures.profile;
    EXPECT_EQ(plan.units(), figures.units)
        << figures.example << " on " << figures.profile;
  }
}

// For two pods on a node.
TEST(ExamplesTest, ReservesAreThoseOfTheDocumentation) {
  const struct {
    const char* example;
    const char* profile;
    uint64_t node, pod;  // MiB
  } kRows[] = {
      {"storage-gateway.yaml", "mlx5", 14, 7},
      {"storage-gateway.yaml", "rxe", 866, 433},
      {"bulk-mover.yaml", "mlx5", 1, 1},
      {"bulk-mover.yaml", "rxe", 210, 105},
      {"low-latency.yaml", "mlx5", 1, 1},
      {"low-latency.yaml", "rxe", 29, 15},
  };
  for (const auto& row : kRows) {
    Workload workload = Example(row.example);
    workload.pods_per_node = 2;
    const Plan plan = PlanOn(row.profile, workload);
    EXPECT_EQ(Mebibytes(plan.node.node()), row.node) << row.example;
    EXPECT_EQ(Mebibytes(plan.pod.node()), row.pod) << row.example;
  }
}

TEST(ExamplesTest, StartingDepthsAreThoseOfTheDocumentation) {
  const struct {
    const char* group;
    uint64_t mlx5, rxe;  // 0: not shown
  } kRows[] = {
      {"maxSendWr: 2730, maxSendSge: 8, maxRecvWr: 4096", 1'935'048, 0},
      {"maxSendWr: 3413, maxSendSge: 8, maxRecvWr: 3413", 0, 3'429'160},
      {"maxSendWr: 128, maxSendSge: 2, maxInlineData: 64", 121'544, 226'088},
      {"maxSendWr: 106, maxSendSge: 2, maxInlineData: 48, maxRecvWr: 106", 0,
       86'824},
      {"maxSendWr: 128, maxRecvWr: 128", 80'584, 160'552},
      {"maxSendWr: 106, maxRecvWr: 106", 0, 86'824},
      {"maxSendWr: 256, maxSendSge: 4, maxInlineData: 64, maxRecvWr: 256",
       237'256, 439'080},
      {"maxSendWr: 256, maxSendSge: 4, maxInlineData: 60, maxRecvWr: 256",
       155'336, 0},
      {"maxSendWr: 512, maxRecvWr: 0", 231'112, 406'312},
      {"maxSendWr: 426, maxRecvWr: 0", 0, 209'704},
      {"type: ud, maxSendWr: 256, maxRecvWr: 1024", 198'344, 799'528},
  };
  for (const auto& row : kRows) {
    const Workload workload =
        Read(Groups("- {name: a, " + std::string(row.group) + "}\n"));
    for (const auto& [profile, bytes] :
         {std::pair{"mlx5", row.mlx5}, {"rxe", row.rxe}}) {
      if (bytes == 0) continue;
      EXPECT_EQ(PlanOn(profile, workload).groups[0].each.total().total(), bytes)
          << row.group << " on " << profile;
    }
  }
}

TEST(ExamplesTest, EachNamesItsProvider) {
  for (const char* name :
       {"storage-gateway.yaml", "bulk-mover.yaml", "low-latency.yaml"})
    EXPECT_EQ(Example(name).device->name, "mlx5");
}

}  // namespace
}  // namespace purser::planner
