// SPDX-License-Identifier: Apache-2.0
//
// One plan with all that is to be said about it, and its forms: a table for
// people, JSON and YAML for programs (docs/planning.md describes the fields).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/plan.h"
#include "planner/savings.h"

namespace purser::planner {

struct Report {
  Device device;
  // Why there is no plan; then nothing below means anything.
  absl::Status status;
  std::shared_ptr<const Workload> asked;
  std::shared_ptr<const Workload> planned;  // with other depths where fitted
  std::optional<uint64_t> budget;           // to fit into, bytes
  Plan plan;
  Neighbours neighbours;

  bool refused() const { return !status.ok() || !plan.refusals.empty(); }
};

// With `budget`, of the depths that fit into it.
Report MakeReport(std::shared_ptr<const Workload> workload,
                  const Device& device, std::optional<uint64_t> budget);

// Its groups, queues, sums, what to ask for, warnings, savings.
std::string RenderTable(const Report& report);
// One line for each device.
std::string RenderComparison(std::span<const Report> reports);

// The same document in both; figures in bytes. With groups where there is one
// report.
std::string RenderJson(std::span<const Report> reports);
std::string RenderYaml(std::span<const Report> reports);

// "exact", "estimated", "fallback".
const char* ExactnessName(queue_memory::Exactness exactness);

// What refuses, one a line: "w.yaml:12:5: groups[2]: …"; the first 100.
std::string RenderRefusals(const Report& report);

}  // namespace purser::planner
