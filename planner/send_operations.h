// SPDX-License-Identifier: Apache-2.0
//
// Types of queue pairs and the operations that are posted to them, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "queue_memory/queue_memory.h"

namespace purser::planner {

// "rc", "uc", "ud", "xrc_send", "raw_packet", "dci", "srd".
absl::StatusOr<queue_memory::QueuePairType> QueuePairTypeFromName(
    std::string_view name);
// The name that the above takes.
std::string TypeName(queue_memory::QueuePairType type);

// The bits of queue_memory::SendOps for "send", "write", "read", "atomic",
// "bind", "invalidate" or "inline-write". InvalidArgument for another, and for
// one that queue pairs of that type cannot do.
absl::StatusOr<uint32_t> SendOperation(std::string_view name,
                                       queue_memory::QueuePairType type);

// Initiators have no receive queue.
bool SendsAlone(queue_memory::QueuePairType type);

}  // namespace purser::planner
