// SPDX-License-Identifier: Apache-2.0
//
// Content that both sides of a ping can compute: pseudo-random, different for
// each seed, lane and index, so that data which is late, doubled or somebody
// else's is seen too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace purser::cli {

enum class Lane : uint64_t { kThere, kBack, kStream };

class Payload {
 public:
  Payload(uint64_t seed, Lane lane, uint64_t index);
  void Fill(std::span<std::byte> bytes) const;
  // How many bytes are not as Fill() would make them.
  uint64_t Mismatches(std::span<const std::byte> bytes) const;

 private:
  uint64_t key_;
};

// Over a sequence of chunks; depends on content and order.
class Checksum {
 public:
  void Add(std::span<const std::byte> bytes);
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

}  // namespace purser::cli
