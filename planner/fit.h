// SPDX-License-Identifier: Apache-2.0
//
// The deepest queues that a budget holds.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/workload.h"

namespace purser::planner {

// `workload` with other depths: those of all groups and shared receive queues
// multiplied by one factor, above or below 1, the largest with which a pod's
// queues take at most `budget` bytes; then each raised to what costs the same.
// No depth above what the device takes, none below 1 that was not 0. Completion
// queues follow, but for those of a given size. InvalidArgument where the
// device refuses a group at any depth, ResourceExhausted where the budget does
// not hold all groups at the least depth: both say what to do.
absl::StatusOr<Workload> Fit(const Workload& workload, const Device& device,
                             uint64_t budget);

}  // namespace purser::planner
