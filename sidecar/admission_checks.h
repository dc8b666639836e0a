// SPDX-License-Identifier: Apache-2.0
//
// What refuses a request whatever is left of the budget. Pure. `what`: the
// request, for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "queue_memory/queue_memory.h"
#include "sidecar/admission.h"

namespace purser::sidecar {

// What verbs would take and no application can mean: zero is also what a field
// that was left out looks like.
std::optional<Refusal> CheckSense(
    const std::string& what, const queue_memory::QueuePairRequest& request);

// The limits that ibv_query_device names.
std::optional<Refusal> CheckDeviceAttributes(
    const std::string& what, const DeviceTraits& device,
    const queue_memory::QueuePairRequest& request, uint64_t live_queue_pairs);

}  // namespace purser::sidecar
