// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace purser::base {

// A Kubernetes quantity of bytes: "64Mi", "1.5Gi", "500M", "1e9", "67108864".
// Fractions of a byte are rounded up, as Kubernetes does, but for "64m" (64
// thousandths), which Kubernetes takes for a byte and nobody means. That,
// negative, empty, with an unknown suffix or above 2^63-1: InvalidArgument that
// shows the form.
absl::StatusOr<uint64_t> ParseQuantity(std::string_view text);

// 0 < x <= 1, also as a percentage: "0.5", "50%"; nullopt for anything else.
std::optional<double> ParseFraction(std::string_view text);

// "64 MiB", "296 KiB", "1.5 GiB", "512 B": for people. Exact figures go beside
// it.
std::string FormatBytes(uint64_t bytes);
// "67,108,864".
std::string FormatCount(uint64_t count);

}  // namespace purser::base
