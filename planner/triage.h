// SPDX-License-Identifier: Apache-2.0
//
// Why did ibv_create_qp fail? The questions in the order in which they are
// worth asking: limits of the device, memory, capacities written back, what the
// driver counts. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/machine_checks.h"

namespace purser::planner {

enum class Errno { kEinval, kEnomem, kEperm, kEopnotsupp, kEagain, kEnospc };
// "EINVAL", "einval" or "22". InvalidArgument with those that there are.
absl::StatusOr<Errno> ErrnoFromName(std::string_view name);

struct Counter {
  std::string name;  // "rxe0 port 1 out_of_buffer"
  uint64_t value = 0;
};

struct Failure {
  Errno error = Errno::kEinval;
  const Workload& workload;  // of one group: what was asked
  const Plan& plan;          // of that workload
  const Demand& demand;
  const Machine& machine;
  absl::StatusOr<std::vector<Counter>> counters =
      absl::NotFoundError("no device of this machine is named");
};

// One line for each question; the last is "verdict".
Findings Explain(const Failure& failure);

}  // namespace purser::planner
