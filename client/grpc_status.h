// SPDX-License-Identifier: Apache-2.0
//
// The one place where a grpc::Status becomes an absl::Status.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace purser::client {

// Same code and message; a Refusal in the google.rpc.Status details becomes a
// payload, which RefusalOf() reads. Details that cannot be understood are left
// out: the code and the message are worth more than a second error.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace purser::client
