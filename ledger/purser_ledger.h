/* SPDX-License-Identifier: Apache-2.0
 *
 * The pod's account of RDMA queue memory, for applications that create queue
 * pairs of their own. Header only, C11 (gnu11) or C++, needs libc alone; see
 * docs/ledger.md.
 *
 * A process attaches once and shares the handle among its threads: reserve,
 * commit and release are lock-free and may run at the same time. All return 0
 * or an errno:
 *   EDQUOT  the budget refuses; `why` has the figures; nothing was changed
 *   EUCLEAN the file is damaged; the sidecar repairs it within a second: again
 *   ENODATA the file was truncated; the sidecar repairs it: again
 *   ESTALE  the slot is not this handle's any more: detach, attach
 *   EINVAL  an amount beyond 2^48 - 1
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "ledger/purser_ledger_layout.h"

struct purser_ledger {
  int fd; /* its open file description holds the slot's lock */
  uint32_t slot;
  pid_t pid;       /* of the process that attached */
  uint64_t state;  /* of the slot while it is this handle's */
  uint64_t* words; /* the file */
};

struct purser_ledger_charge {
  uint64_t container_bytes, node_bytes, queue_pairs;
};

struct purser_ledger_refusal {
  enum purser_ledger_amount by; /* which bound refused */
  uint64_t needed, held, bound;
};

/* ---- Words ---- */

/* A word that is being written by the sidecar may be seen half written. */
static inline int purser_ledger_load(const struct purser_ledger* ledger,
                                     uint32_t index, uint64_t* value) {
  for (int look = 0; look < 4; ++look)
    if (purser_ledger_decode(
            index, __atomic_load_n(&ledger->words[index], __ATOMIC_SEQ_CST),
            value))
      return 0;
  return EUCLEAN;
}

static inline void purser_ledger_store(const struct purser_ledger* ledger,
                                       uint32_t index, uint64_t value) {
  __atomic_store_n(&ledger->words[index], purser_ledger_encode(index, value),
                   __ATOMIC_SEQ_CST);
}

/* What is unknown stays unknown. */
static inline int purser_ledger_add(const struct purser_ledger* ledger,
                                    uint32_t index, uint64_t amount) {
  uint64_t word = __atomic_load_n(&ledger->words[index], __ATOMIC_SEQ_CST);
  uint64_t value;
  do {
    if (!purser_ledger_decode(index, word, &value)) return EUCLEAN;
    if (value == PURSER_LEDGER_MAX) return 0;
    if (amount >= PURSER_LEDGER_MAX - value) return EINVAL;
  } while (!__atomic_compare_exchange_n(
      &ledger->words[index], &word, purser_ledger_encode(index, value + amount),
      1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return 0;
}

/* Never below 0; what is unknown stays unknown. */
static inline int purser_ledger_subtract(const struct purser_ledger* ledger,
                                         uint32_t index, uint64_t amount) {
  uint64_t word = __atomic_load_n(&ledger->words[index], __ATOMIC_SEQ_CST);
  uint64_t value;
  do {
    if (!purser_ledger_decode(index, word, &value)) return EUCLEAN;
    if (value == PURSER_LEDGER_MAX) return 0;
  } while (!__atomic_compare_exchange_n(
      &ledger->words[index], &word,
      purser_ledger_encode(index, value > amount ? value - amount : 0), 1,
      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return 0;
}

/* A truncated file has no memory behind the mapping: to touch it is SIGBUS.
 * Asks for the end, which is the cheapest way to its size. */
static inline int purser_ledger_whole(const struct purser_ledger* ledger) {
  const off_t size = lseek(ledger->fd, 0, SEEK_END);
  if (size < 0) return errno;
  return size >= PURSER_LEDGER_BYTES ? 0 : ENODATA;
}

/* The slot is this handle's as long as its descriptor is open: a damaged state
 * is written again. */
static inline int purser_ledger_usable(const struct purser_ledger* ledger) {
  const int error = purser_ledger_whole(ledger);
  if (error != 0) return error;
  const uint32_t index = PURSER_LEDGER_STATES + ledger->slot;
  uint64_t state;
  if (purser_ledger_load(ledger, index, &state)) {
    purser_ledger_store(ledger, index, ledger->state);
    return 0;
  }
  return state == ledger->state ? 0 : ESTALE;
}

/* ---- The lock of a slot ---- */

/* Takes or drops the lock on the byte at `offset`, for this open file
 * description. EAGAIN: another holds it. 37: F_OFD_SETLK, which <fcntl.h> has
 * for _GNU_SOURCE alone. */
static inline int purser_ledger_lock(int fd, uint64_t offset, short type) {
  struct flock lock;
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = (off_t)offset;
  lock.l_len = 1;
  lock.l_pid = 0;
  return fcntl(fd, 37, &lock) == 0 ? 0 : errno;
}

static inline uint64_t purser_ledger_slot_offset(uint32_t slot) {
  return (uint64_t)purser_ledger_slot_word(slot, 0) * 8;
}

/* ---- Sums ---- */

static inline int purser_ledger_sum_account(const struct purser_ledger* ledger,
                                            uint32_t first, uint64_t* sums) {
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS; ++i) {
    uint64_t value;
    if (purser_ledger_load(ledger, first + i, &value)) return EUCLEAN;
    sums[i] += value;
  }
  return 0;
}

/* The first taken slot from `*slot` on, or PURSER_LEDGER_SLOTS. Most are free
 * and sound: they cost about a nanosecond each. */
static inline int purser_ledger_next_taken(const struct purser_ledger* ledger,
                                           uint32_t* slot) {
  uint32_t i = *slot;
  for (; i < PURSER_LEDGER_SLOTS; ++i) {
    const uint32_t index = PURSER_LEDGER_STATES + i;
    uint64_t state;
    if (!purser_ledger_decode(
            index, __atomic_load_n(&ledger->words[index], __ATOMIC_SEQ_CST),
            &state) &&
        purser_ledger_load(ledger, index, &state))
      return EUCLEAN;
    if (purser_ledger_taken(state)) break;
  }
  *slot = i;
  return 0;
}

/* What all hold. 257 words of 48 bits: no sum exceeds 64 bits. */
static inline int purser_ledger_sum(const struct purser_ledger* ledger,
                                    uint64_t* sums) {
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS; ++i) sums[i] = 0;
  int error = purser_ledger_sum_account(ledger, PURSER_LEDGER_BROKERED, sums);
  for (uint32_t slot = 0; !error; ++slot) {
    error = purser_ledger_next_taken(ledger, &slot);
    if (error || slot == PURSER_LEDGER_SLOTS) break;
    error = purser_ledger_sum_account(ledger, purser_ledger_slot_word(slot, 0),
                                      sums);
  }
  return error;
}

/* ---- Reserve, commit, release ---- */

static inline int purser_ledger_amounts(
    const struct purser_ledger_charge* charge, uint64_t* amounts) {
  if (charge->container_bytes > PURSER_LEDGER_MAX ||
      charge->node_bytes > PURSER_LEDGER_MAX - charge->container_bytes ||
      charge->queue_pairs > PURSER_LEDGER_MAX)
    return EINVAL;
  amounts[PURSER_LEDGER_ALL_BYTES] =
      charge->container_bytes + charge->node_bytes;
  amounts[PURSER_LEDGER_CONTAINER_BYTES] = charge->container_bytes;
  amounts[PURSER_LEDGER_NODE_BYTES] = charge->node_bytes;
  amounts[PURSER_LEDGER_QUEUE_PAIRS] = charge->queue_pairs;
  return 0;
}

/* Takes a claim that was not granted back from the own slot: each word that is
 * sound. */
static inline void purser_ledger_unclaim(const struct purser_ledger* ledger,
                                         const uint64_t* amounts) {
  for (uint32_t i = PURSER_LEDGER_AMOUNTS; i-- > 0;)
    if (amounts[i] != 0)
      purser_ledger_subtract(ledger, purser_ledger_slot_word(ledger->slot, i),
                             amounts[i]);
}

/* Takes all of them back from the own slot, or none: it can be tried again. */
static inline int purser_ledger_return(const struct purser_ledger* ledger,
                                       const uint64_t* amounts) {
  for (uint32_t i = PURSER_LEDGER_AMOUNTS; i-- > 0;) {
    const int error =
        amounts[i] == 0
            ? 0
            : purser_ledger_subtract(
                  ledger, purser_ledger_slot_word(ledger->slot, i), amounts[i]);
    if (!error) continue;
    /* A claim that never ends: what was seen in between is no upper bound. */
    purser_ledger_add(
        ledger, purser_ledger_slot_word(ledger->slot, PURSER_LEDGER_BEGUN), 1);
    while (++i < PURSER_LEDGER_AMOUNTS)
      if (amounts[i] != 0)
        purser_ledger_add(ledger, purser_ledger_slot_word(ledger->slot, i),
                          amounts[i]);
    return error;
  }
  return 0;
}

/* EDQUOT where a bound is exceeded by what this claim is part of. */
static inline int purser_ledger_fits(const struct purser_ledger* ledger,
                                     const uint64_t* claim,
                                     struct purser_ledger_refusal* why) {
  uint64_t sums[PURSER_LEDGER_AMOUNTS];
  if (purser_ledger_sum(ledger, sums)) return EUCLEAN;
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS; ++i) {
    uint64_t bound;
    if (purser_ledger_load(ledger, PURSER_LEDGER_BUDGET + i, &bound))
      return EUCLEAN;
    if (claim[i] == 0 || bound == PURSER_LEDGER_MAX || sums[i] <= bound)
      continue;
    if (why) {
      why->by = (enum purser_ledger_amount)i;
      why->needed = claim[i];
      /* Another may just have dropped what this slot had. */
      why->held = sums[i] > claim[i] ? sums[i] - claim[i] : 0;
      why->bound = bound;
    }
    return EDQUOT;
  }
  return 0;
}

static inline int purser_ledger_claim(const struct purser_ledger* ledger,
                                      const uint64_t* claim,
                                      struct purser_ledger_refusal* why) {
  uint64_t claimed[PURSER_LEDGER_AMOUNTS] = {0, 0, 0, 0};
  int error = purser_ledger_add(
      ledger, purser_ledger_slot_word(ledger->slot, PURSER_LEDGER_BEGUN), 1);
  if (error) return error;
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS && !error; ++i) {
    if (claim[i] == 0) continue;
    error = purser_ledger_add(ledger, purser_ledger_slot_word(ledger->slot, i),
                              claim[i]);
    if (!error) claimed[i] = claim[i];
  }
  if (!error) error = purser_ledger_fits(ledger, claim, why);
  if (error) purser_ledger_unclaim(ledger, claimed);
  purser_ledger_add(
      ledger,
      purser_ledger_slot_word(
          ledger->slot, error ? PURSER_LEDGER_REFUSED : PURSER_LEDGER_GRANTED),
      1);
  return error;
}

/* `why` may be NULL; it is written with EDQUOT alone. */
static inline int purser_ledger_reserve(
    const struct purser_ledger* ledger,
    const struct purser_ledger_charge* charge,
    struct purser_ledger_refusal* why) {
  uint64_t claim[PURSER_LEDGER_AMOUNTS];
  int error = purser_ledger_amounts(charge, claim);
  if (!error) error = purser_ledger_usable(ledger);
  return error ? error : purser_ledger_claim(ledger, claim, why);
}

/* Turns a reservation into what was really allocated. When that is more and is
 * refused, the lease stays at `reserved`: undo the creation, and release it. */
static inline int purser_ledger_commit(
    const struct purser_ledger* ledger,
    const struct purser_ledger_charge* reserved,
    const struct purser_ledger_charge* actual,
    struct purser_ledger_refusal* why) {
  uint64_t before[PURSER_LEDGER_AMOUNTS], after[PURSER_LEDGER_AMOUNTS];
  uint64_t more[PURSER_LEDGER_AMOUNTS], less[PURSER_LEDGER_AMOUNTS];
  int error = purser_ledger_amounts(reserved, before);
  if (!error) error = purser_ledger_amounts(actual, after);
  if (error) return error;
  int grows = 0, shrinks = 0;
  for (uint32_t i = 0; i < PURSER_LEDGER_AMOUNTS; ++i) {
    more[i] = after[i] > before[i] ? after[i] - before[i] : 0;
    less[i] = before[i] > after[i] ? before[i] - after[i] : 0;
    grows |= more[i] != 0;
    shrinks |= less[i] != 0;
  }
  /* The model was right, as it mostly is. */
  if (!grows && !shrinks) return 0;
  error = purser_ledger_usable(ledger);
  if (!error && grows) error = purser_ledger_claim(ledger, more, why);
  if (error) return error;
  error = purser_ledger_return(ledger, less);
  if (error) purser_ledger_unclaim(ledger, more);
  return error;
}

static inline int purser_ledger_release(
    const struct purser_ledger* ledger,
    const struct purser_ledger_charge* charge) {
  uint64_t amounts[PURSER_LEDGER_AMOUNTS];
  int error = purser_ledger_amounts(charge, amounts);
  if (!error) error = purser_ledger_usable(ledger);
  if (error) return error;
  return purser_ledger_return(ledger, amounts);
}

/* ---- Attach, detach ---- */

/* Under the slot's lock. The counts of who had it go to those who left. */
static inline void purser_ledger_clear_slot(
    const struct purser_ledger* ledger) {
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t index =
        purser_ledger_slot_word(ledger->slot, PURSER_LEDGER_GRANTED + i);
    uint64_t count;
    if (purser_ledger_load(ledger, index, &count)) continue;
    purser_ledger_store(ledger, index, 0);
    purser_ledger_add(ledger, PURSER_LEDGER_LEFT + i, count);
  }
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOT_USED_WORDS; ++i)
    purser_ledger_store(ledger, purser_ledger_slot_word(ledger->slot, i), 0);
}

/* Of `ledger->slot`. EAGAIN: somebody holds it; EBUSY: it is taken. */
static inline int purser_ledger_take_slot(struct purser_ledger* ledger,
                                          int from_the_dead) {
  const uint32_t index = PURSER_LEDGER_STATES + ledger->slot;
  uint64_t state = 0;
  if (!from_the_dead &&
      (purser_ledger_load(ledger, index, &state) || purser_ledger_taken(state)))
    return EBUSY;
  const uint64_t offset = purser_ledger_slot_offset(ledger->slot);
  const int error = purser_ledger_lock(ledger->fd, offset, F_WRLCK);
  if (error) return error;
  const int damaged = purser_ledger_load(ledger, index, &state);
  if (!from_the_dead && (damaged || purser_ledger_taken(state))) {
    purser_ledger_lock(ledger->fd, offset, F_UNLCK);
    return EBUSY;
  }
  purser_ledger_clear_slot(ledger);
  purser_ledger_store(ledger,
                      purser_ledger_slot_word(ledger->slot, PURSER_LEDGER_PID),
                      (uint64_t)ledger->pid);
  ledger->state = purser_ledger_state_taken(state);
  purser_ledger_store(
      ledger, purser_ledger_slot_word(ledger->slot, PURSER_LEDGER_STATE_COPY),
      ledger->state);
  purser_ledger_store(ledger, index, ledger->state);
  return 0;
}

static inline int purser_ledger_find_slot(struct purser_ledger* ledger) {
  for (int from_the_dead = 0; from_the_dead < 2; ++from_the_dead)
    for (ledger->slot = 0; ledger->slot < PURSER_LEDGER_SLOTS; ++ledger->slot) {
      const int error = purser_ledger_take_slot(ledger, from_the_dead);
      if (error != EAGAIN && error != EACCES && error != EBUSY) return error;
    }
  return EUSERS;
}

/* Both versions say so: another one. Else the sidecar repairs it. */
static inline int purser_ledger_header_error(
    const struct purser_ledger* ledger) {
  const uint64_t version = __atomic_load_n(&ledger->words[1], __ATOMIC_SEQ_CST);
  uint64_t checked;
  return ledger->words[0] == PURSER_LEDGER_MAGIC &&
                 version != PURSER_LEDGER_VERSION &&
                 !purser_ledger_load(ledger, PURSER_LEDGER_CHECKED_VERSION,
                                     &checked) &&
                 checked == version
             ? EPROTONOSUPPORT
             : EBADMSG;
}

static inline int purser_ledger_map(struct purser_ledger* ledger) {
  const int error = purser_ledger_whole(ledger);
  if (error) return error;
  void* address = mmap(NULL, PURSER_LEDGER_BYTES, PROT_READ | PROT_WRITE,
                       MAP_SHARED, ledger->fd, 0);
  if (address == MAP_FAILED) return errno;
  ledger->words = (uint64_t*)address;
  for (uint32_t i = 0; i < PURSER_LEDGER_HEADER_WORDS; ++i)
    if (__atomic_load_n(&ledger->words[i], __ATOMIC_SEQ_CST) !=
        purser_ledger_header_word(i))
      return purser_ledger_header_error(ledger);
  return 0;
}

static inline void purser_ledger_unmap(struct purser_ledger* ledger) {
  if (ledger->words) munmap(ledger->words, PURSER_LEDGER_BYTES);
  if (ledger->fd >= 0) close(ledger->fd);
  ledger->words = NULL;
  ledger->fd = -1;
}

/* Takes a slot. 0 or an errno (docs/ledger.md); then there is nothing to
 * detach. */
static inline int purser_ledger_attach(struct purser_ledger* ledger,
                                       const char* path) {
  ledger->words = NULL;
  ledger->slot = 0;
  ledger->state = 0;
  ledger->pid = getpid();
  ledger->fd =
      open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  int error = ledger->fd < 0 ? errno : purser_ledger_map(ledger);
  if (!error) error = purser_ledger_find_slot(ledger);
  if (error) purser_ledger_unmap(ledger);
  return error;
}

/* Gives the slot back with all that is still reserved in it. In a forked child
 * that inherited the handle the slot stays the parent's. */
static inline void purser_ledger_detach(struct purser_ledger* ledger) {
  if (ledger->fd < 0) return;
  if (ledger->pid == getpid() && purser_ledger_usable(ledger) == 0) {
    purser_ledger_clear_slot(ledger);
    purser_ledger_store(ledger, PURSER_LEDGER_STATES + ledger->slot,
                        purser_ledger_state_free(ledger->state));
    purser_ledger_lock(ledger->fd, purser_ledger_slot_offset(ledger->slot),
                       F_UNLCK);
  }
  purser_ledger_unmap(ledger);
}
