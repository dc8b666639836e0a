// SPDX-License-Identifier: Apache-2.0
//
// A CreateQueuePair message as a request to QueuePairs. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "purser/v1/sidecar.pb.h"
#include "sidecar/device.h"
#include "sidecar/queue_pairs.h"

namespace purser::sidecar {

// InvalidArgument says which field is wrong.
absl::StatusOr<QueuePairs::CreateRequest> CreateRequestOf(
    const v1::CreateQueuePairRequest& request, Device& device);

}  // namespace purser::sidecar
