// SPDX-License-Identifier: Apache-2.0
#include "planner/buffers.h"

#include <algorithm>
#include <bit>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "queue_memory/arithmetic.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

// Together no more than 2^63-1 bytes, whatever is asked for.
constexpr uint64_t kMostBufferBytes = uint64_t{1} << 46;
constexpr uint64_t kMostBuffers = 1 << 16;
constexpr uint64_t kMostAlignment = 1 << 30;

absl::Status NoBuffers(std::string_view text, const std::string& why) {
  return absl::InvalidArgumentError(fmt::format(
      "{}: {}; write BYTES[xCOUNT][@ALIGNMENT], such as 64Mix8@4096",
      base::QuoteForMessage(text), why));
}

bool Number(std::string_view text, uint64_t most, uint64_t* value) {
  return absl::SimpleAtoi(absl::string_view(text.data(), text.size()), value) &&
         *value >= 1 && *value <= most;
}

}  // namespace

uint64_t BytesOf(std::span<const Buffers> buffers) {
  uint64_t bytes = 0;
  for (const Buffers& each : buffers)
    bytes = std::min<uint64_t>(bytes + each.bytes * each.count, INT64_MAX / 2);
  return bytes;
}

uint64_t CountOf(std::span<const Buffers> buffers) {
  uint64_t count = 0;
  for (const Buffers& each : buffers) count += each.count;
  return count;
}

uint64_t PinnedBytes(std::span<const Buffers> buffers, uint64_t page) {
  uint64_t bytes = 0;
  for (const Buffers& each : buffers) {
    const uint64_t one = queue_memory::RoundUp(each.bytes, page) +
                         (each.alignment % page == 0 ? 0 : page);
    bytes = std::min<uint64_t>(bytes + one * each.count, INT64_MAX / 2);
  }
  return bytes;
}

absl::StatusOr<Buffers> ParseBuffers(std::string_view text) {
  Buffers buffers;
  std::string_view rest = text;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    if (!Number(rest.substr(at + 1), kMostAlignment, &buffers.alignment) ||
        !std::has_single_bit(buffers.alignment))
      return NoBuffers(text, "an alignment is a power of two, up to 2^30");
    rest = rest.substr(0, at);
  }
  if (const size_t x = rest.find('x'); x != std::string_view::npos) {
    if (!Number(rest.substr(x + 1), kMostBuffers, &buffers.count))
      return NoBuffers(text,
                       fmt::format("a count is from 1 to {}", kMostBuffers));
    rest = rest.substr(0, x);
  }
  PURSER_ASSIGN_OR_RETURN(buffers.bytes, base::ParseQuantity(rest));
  if (buffers.bytes == 0 || buffers.bytes > kMostBufferBytes)
    return NoBuffers(text, "a buffer has from 1 byte to 64Ti");
  return buffers;
}

}  // namespace purser::planner
