// SPDX-License-Identifier: Apache-2.0
#include "ledger/image.h"

namespace purser::ledger {

bool Decode(const Image& image, uint32_t index, uint64_t& value) {
  return purser_ledger_decode(index, image[index], &value);
}

std::optional<uint64_t> StateOf(const Image& image, uint32_t slot) {
  uint64_t state;
  if (Decode(image, StateIndex(slot), state)) return state;
  const uint32_t copy = purser_ledger_slot_word(slot, PURSER_LEDGER_STATE_COPY);
  if (Decode(image, copy, state)) return state;
  return std::nullopt;
}

std::optional<Claims> ClaimsOf(const Image& image, uint32_t slot) {
  const auto word = [&](uint32_t i, uint64_t& value) {
    return Decode(image, purser_ledger_slot_word(slot, i), value);
  };
  uint64_t state, begun, granted, refused;
  if (!Decode(image, StateIndex(slot), state) || !purser_ledger_taken(state) ||
      !word(PURSER_LEDGER_BEGUN, begun) ||
      !word(PURSER_LEDGER_GRANTED, granted) ||
      !word(PURSER_LEDGER_REFUSED, refused))
    return std::nullopt;
  return Claims{state, begun, granted + refused};
}

bool Free(const Image& image, uint32_t slot) {
  uint64_t state, value;
  if (!Decode(image, StateIndex(slot), state) || purser_ledger_taken(state))
    return false;
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOT_USED_WORDS; ++i)
    if (!Decode(image, purser_ledger_slot_word(slot, i), value) || value != 0)
      return false;
  return true;
}

uint64_t DamagedWords(const Image& image, uint32_t slot) {
  uint64_t damaged = 0, value;
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOT_USED_WORDS; ++i)
    if (!Decode(image, purser_ledger_slot_word(slot, i), value)) ++damaged;
  return damaged + (Decode(image, StateIndex(slot), value) ? 0 : 1);
}

}  // namespace purser::ledger
