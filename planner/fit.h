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
// queues follow; a group stays behind where completions have no room, and a
// fifth more, in queues of a given size, or in one of its own, which is at most
// as large as the device has it. InvalidArgument where the device refuses a
// group, or a given completion queue has too little room, at any depth;
// ResourceExhausted where the budget does not hold all groups at the least
// depth: all say what to do.
absl::StatusOr<Workload> Fit(const Workload& workload, const Device& device,
                             uint64_t budget);

}  // namespace purser::planner
