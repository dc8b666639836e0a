// SPDX-License-Identifier: Apache-2.0
//
// How many units the capacity resources have: arithmetic on the configuration
// and what the node has. InvalidArgument says what was asked, what the kubelet
// takes, and the largest that fits.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "plugin/config/config.h"

namespace purser::plugin {

// On a node with that much memory, which does not matter where the
// configuration has a capacity in bytes. The default fraction is cut to what
// fits instead of being refused; less than one unit is refused.
absl::StatusOr<uint32_t> QueueMemoryUnits(const QueueMemoryConfig& config,
                                          uint64_t node_memory_bytes);

// Of `total` queue pairs, less the reserve. OutOfRange: more than the kubelet
// takes; InvalidArgument: less than one unit.
absl::StatusOr<uint32_t> QueuePairUnits(const QueuePairConfig& config,
                                        uint64_t total);

}  // namespace purser::plugin
