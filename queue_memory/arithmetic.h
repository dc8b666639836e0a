// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic that the providers' rules are made of, in 64 bits. Internal
// to queue_memory/.
#pragma once

#include <bit>
#include <cstdint>

#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {

inline constexpr uint32_t kDefaultPageSize = 4096;
inline constexpr uint32_t kDefaultCqeSize = 64;
// No device comes near these. They bound what the rules multiply (entries below
// 2^32, bytes of one entry below 2^21), so that no product leaves 64 bits
// whatever a device is said to take.
inline constexpr uint32_t kMostSge = 1u << 16;
inline constexpr uint32_t kMostEntryBytes = 1u << 20;
inline constexpr uint32_t kMostCqeBytes = 1u << 12;
inline constexpr uint32_t kMostSubCqs = 1u << 12;

template <typename T>
constexpr T Min(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
constexpr T Max(T a, T b) {
  return a < b ? b : a;
}

// `multiple` > 0.
constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Without a division; `page_size` is a power of two.
constexpr uint64_t RoundUpToPages(uint64_t bytes, uint32_t page_size) {
  return (bytes + page_size - 1) & ~uint64_t{page_size - 1};
}

// 1 for 0; `value` at most 2^63.
constexpr uint64_t NextPowerOfTwo(uint64_t value) {
  return std::bit_ceil(value);
}

constexpr uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

constexpr uint64_t SaturatingMultiply(uint64_t a, uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

constexpr Refusal RefuseAbove(Limit limit, uint64_t asked, uint64_t allowed) {
  return asked > allowed ? Refusal{limit, asked, allowed} : Refusal{};
}

constexpr QueueMemory Refused(Refusal refusal) {
  QueueMemory memory;
  memory.refusal = refusal;
  return memory;
}

}  // namespace purser::queue_memory
