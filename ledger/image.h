// SPDX-License-Identifier: Apache-2.0
//
// What an image of the ledger file says of a slot, as far as its checks hold.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ledger/purser_ledger_layout.h"

namespace purser::ledger {

using Image = std::array<uint64_t, PURSER_LEDGER_WORDS>;

constexpr uint32_t StateIndex(uint32_t slot) {
  return PURSER_LEDGER_STATES + slot;
}

// False: the word is damaged.
bool Decode(const Image& image, uint32_t index, uint64_t& value);

// Where the slot's state is damaged, its copy. Even: free. None: both are, and
// somebody may have it.
std::optional<uint64_t> StateOf(const Image& image, uint32_t slot);

// Of a taken slot whose counts are sound.
struct Claims {
  uint64_t state, begun, ended;
  friend bool operator==(const Claims&, const Claims&) = default;
};
std::optional<Claims> ClaimsOf(const Image& image, uint32_t slot);

// Nobody's, and nothing in it.
bool Free(const Image& image, uint32_t slot);

uint64_t DamagedWords(const Image& image, uint32_t slot);

}  // namespace purser::ledger
