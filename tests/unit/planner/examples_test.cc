// SPDX-License-Identifier: Apache-2.0
//
// The worked examples in docs/examples/, with the figures that docs/planning.md
// shows.
#include <string>

#include "base/strict_yaml.h"
#include "gmock/gmock.h"
#include "planner/report.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

Workload Example(const std::string& name) {
  const auto text = base::ReadFile(std::string(EXAMPLES_DIR "/") + name);
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

TEST(ExamplesTest, EachNamesItsProvider) {
  for (const char* name :
       {"storage-gateway.yaml", "bulk-mover.yaml", "low-latency.yaml"})
    EXPECT_EQ(Example(name).device->name, "mlx5");
}

}  // namespace
}  // namespace purser::planner
