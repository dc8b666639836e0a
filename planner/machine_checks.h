// SPDX-License-Identifier: Apache-2.0
//
// The pre-flight of a workload against the machine that it will run on: what
// may be locked, what the container and the node have left, and the buffers
// that will be registered. Pure: what was read comes in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cgroup.h"
#include "base/proc.h"
#include "planner/buffers.h"
#include "planner/finding.h"
#include "planner/plan.h"

namespace purser::planner {

struct Machine {
  absl::StatusOr<base::MemlockLimit> memlock = absl::NotFoundError("not read");
  absl::StatusOr<base::CgroupMemory> cgroup = absl::NotFoundError("not read");
  absl::StatusOr<base::NodeMemory> node = absl::NotFoundError("not read");
  absl::StatusOr<base::HugePages> huge_pages = absl::NotFoundError("not read");
  uint64_t page_bytes = 4096;
  std::string ring_allocator;  // mlx5: MLX_QP_ALLOC_TYPE, "" unset
};

struct Demand {
  std::vector<Buffers> buffers;
  bool huge_pages = false;         // buffers will lie in huge pages
  std::optional<uint64_t> budget;  // bytes of queue memory that the pod has
};

Findings MachineFindings(const Plan& plan, const Demand& demand,
                         const Machine& machine);
// The lines of the above that say why memory is not had: "memlock",
// "cgroup_memory", "node_memory".
Findings MemoryFindings(const Plan& plan, const Demand& demand,
                        const Machine& machine);

}  // namespace purser::planner
