// SPDX-License-Identifier: Apache-2.0
//
// What the service answers instead of a result: the one place where absl's
// status codes and admission's refusals become gRPC's.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"
#include "sidecar/admission.h"

namespace purser::sidecar {

// The message is cut at 1,500 bytes: it travels in an HTTP/2 header.
grpc::Status ToGrpcStatus(const absl::Status& status);

// With the Refusal in its google.rpc.Status details. RESOURCE_EXHAUSTED: no
// budget, no more queue pairs, no memory. OUT_OF_RANGE: above a device's limit.
// INVALID_ARGUMENT: the request contradicts itself, or the device refused it.
// INTERNAL: the device failed otherwise.
grpc::Status ToGrpcStatus(const Refusal& refusal);

}  // namespace purser::sidecar
