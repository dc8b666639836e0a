/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger file's layout, version 1 (docs/ledger.md), for C and C++. All
 * fields are 64-bit words; most are checked: 48 bits of value and 16 bits of
 * check over the value and the word's index. */
#pragma once

#include <stdint.h>

enum {
  PURSER_LEDGER_VERSION = 1,
  PURSER_LEDGER_BYTES = 36864,
  PURSER_LEDGER_WORDS = PURSER_LEDGER_BYTES / 8,
  PURSER_LEDGER_SLOTS = 256,

  /* Indexes of words. The header is constant; of it the second version alone is
   * checked: it tells another version from a damaged first one. */
  PURSER_LEDGER_HEADER = 0,
  PURSER_LEDGER_CHECKED_VERSION = 6,
  PURSER_LEDGER_HEADER_WORDS = 7,
  /* Of each: by enum purser_ledger_amount. */
  PURSER_LEDGER_BUDGET = 64 / 8,
  PURSER_LEDGER_BROKERED = 128 / 8,
  /* Granted and refused in slots that their processes left. */
  PURSER_LEDGER_LEFT = 192 / 8,
  /* The sidecar's: granted and refused in slots of the dead, slots reclaimed,
   * words repaired. */
  PURSER_LEDGER_SIDECAR = 256 / 8,
  PURSER_LEDGER_SIDECAR_WORDS = 4,
  PURSER_LEDGER_STATES = 1024 / 8,
  PURSER_LEDGER_FIRST_SLOT = 4096 / 8,
  PURSER_LEDGER_SLOT_WORDS = 128 / 8,

  /* Within a slot, behind its amounts. Claims are counted when they begin, and
   * as granted or refused when they have ended: where both are equal, none is
   * under way. */
  PURSER_LEDGER_GRANTED = 4,
  PURSER_LEDGER_REFUSED = 5,
  PURSER_LEDGER_BEGUN = 6,
  PURSER_LEDGER_PID = 7,
  /* The slot's state again while it is taken, else 0. */
  PURSER_LEDGER_STATE_COPY = 8,
  PURSER_LEDGER_SLOT_USED_WORDS = 9
};

/* What is bounded and held. All bytes: container-charged and node-charged. */
enum purser_ledger_amount {
  PURSER_LEDGER_ALL_BYTES = 0,
  PURSER_LEDGER_CONTAINER_BYTES = 1,
  PURSER_LEDGER_NODE_BYTES = 2,
  PURSER_LEDGER_QUEUE_PAIRS = 3,
  PURSER_LEDGER_AMOUNTS = 4
};

/* The largest value of a checked word. As a bound: none. As an amount or a
 * count of claims: unknown, after damage that could not be undone; it stays so
 * until the slot is free. */
static const uint64_t PURSER_LEDGER_MAX = ((uint64_t)1 << 48) - 1;

static const uint64_t PURSER_LEDGER_MAGIC =
    0x474c524553525550u; /* "PURSERLG" */

static inline uint32_t purser_ledger_slot_word(uint32_t slot, uint32_t word) {
  return PURSER_LEDGER_FIRST_SLOT + slot * PURSER_LEDGER_SLOT_WORDS + word;
}

/* value <= PURSER_LEDGER_MAX. Never 0. */
static inline uint64_t purser_ledger_encode(uint32_t index, uint64_t value) {
  const uint64_t place = (index + (uint64_t)1) * 0x9e3779b97f4a7c15u;
  const uint64_t mixed = (value ^ place) * 0xd6e8feb86659fd93u;
  return (mixed & ~PURSER_LEDGER_MAX) | value;
}

/* 0: damaged. */
static inline int purser_ledger_decode(uint32_t index, uint64_t word,
                                       uint64_t* value) {
  *value = word & PURSER_LEDGER_MAX;
  return purser_ledger_encode(index, *value) == word;
}

/* What the header's word is, in any file of this version. */
static inline uint64_t purser_ledger_header_word(uint32_t index) {
  switch (index) {
    case 0:
      return PURSER_LEDGER_MAGIC;
    case 1:
      return PURSER_LEDGER_VERSION;
    case 2:
      return PURSER_LEDGER_BYTES;
    case 3:
      return PURSER_LEDGER_FIRST_SLOT * 8;
    case 4:
      return PURSER_LEDGER_SLOT_WORDS * 8;
    case 5:
      return PURSER_LEDGER_SLOTS;
    case PURSER_LEDGER_CHECKED_VERSION:
      return purser_ledger_encode(index, PURSER_LEDGER_VERSION);
    default:
      return 0;
  }
}

/* A slot's state: odd: taken. Each change has a state of its own. */
static inline int purser_ledger_taken(uint64_t state) {
  return (state & 1) != 0;
}
static inline uint64_t purser_ledger_state_taken(uint64_t before) {
  return ((before | 1) + (purser_ledger_taken(before) ? 2 : 0)) &
         PURSER_LEDGER_MAX;
}
static inline uint64_t purser_ledger_state_free(uint64_t before) {
  return ((before | 1) + 1) & PURSER_LEDGER_MAX;
}
