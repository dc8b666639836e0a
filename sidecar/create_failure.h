// SPDX-License-Identifier: Apache-2.0
//
// What the device failed to create although it was admitted.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "queue_memory/queue_memory.h"
#include "sidecar/admission.h"
#include "sidecar/counters.h"

namespace purser::sidecar {

// Counts it. `object`: "qp", "cq", "srq"; `predicted`: of what was to be
// created; `proc_root`: where the memlock limit is read.
Refusal CreateFailure(const char* object, const absl::Status& status,
                      const queue_memory::QueueMemory& predicted,
                      const std::string& proc_root, Counters& counters);

// The answer to whoever creates something on a device that is lost meanwhile.
absl::Status LostMeanwhile(const std::string& device);

}  // namespace purser::sidecar
