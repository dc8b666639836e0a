// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::client {

// Why the sidecar refused, when `status` is a refusal: the bytes needed, used
// and budgeted, the bound that refused, the largest max_send_wr that would fit,
// or the device limit. nullopt for every other error.
std::optional<v1::Refusal> RefusalOf(const absl::Status& status);

}  // namespace purser::client
