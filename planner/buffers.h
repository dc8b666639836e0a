// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace purser::planner {

// Buffers that are alike, each registered as one memory region.
struct Buffers {
  uint64_t bytes = 0;
  uint64_t count = 1;
  uint64_t alignment = 16;  // malloc's, where nothing is said
};
// BYTES[xCOUNT][@ALIGNMENT]: "64Mi", "4096x100@4096".
absl::StatusOr<Buffers> ParseBuffers(std::string_view text);

// Of all together; no sum wraps.
uint64_t BytesOf(std::span<const Buffers> buffers);
uint64_t CountOf(std::span<const Buffers> buffers);
// A device pins whole pages; an unaligned buffer touches one more.
uint64_t PinnedBytes(std::span<const Buffers> buffers, uint64_t page);

}  // namespace purser::planner
