// SPDX-License-Identifier: Apache-2.0
//
// The pod's account of queue memory: reserve before creation, commit after it,
// release at destruction. The state lies in one flat, versioned struct of
// lock-free atomics (LedgerState) that needs no pointers and no constructors,
// so that it can later live in a file mapped by several processes; for now the
// sidecar holds it in its own memory. Freestanding.
//
// Invariant, at every instant and for every bound: the bytes held never exceed
// the bound. A reserve that would break it is refused and changes nothing. Two
// concurrent reserves of which one fits may refuse both only if neither would
// have fit beside the other's momentary hold; they never admit both.
#pragma once

#include <atomic>
#include <cstdint>

namespace purser::ledger {

inline constexpr uint64_t kUnlimited = UINT64_MAX;
inline constexpr uint32_t kMagic = 0x50555253;  // "PURS"
inline constexpr uint32_t kVersion = 1;

// Bytes of a lease by who pays: the container's memory cgroup, or the node.
struct Charge {
  uint64_t container = 0;
  uint64_t node = 0;
  constexpr uint64_t total() const { return container + node; }
  friend constexpr bool operator==(const Charge&, const Charge&) = default;
};

// Layout in memory, version 1, little-endian as the machine; offsets are pinned
// in ledger.cc. All counters are bytes unless said otherwise. Each cache line
// has one kind of writer:
//   0  identity: written once, by Format()
//  64  bounds: written by the owner of the budget
// 128  held: written by every reserve, commit and release
// 192  statistics: written with them
// 256  end
struct LedgerState {
  uint32_t magic;
  uint32_t version;
  uint64_t size_bytes;                            // sizeof(LedgerState)
  alignas(64) std::atomic<uint64_t> total_bound;  // on container + node bytes
  std::atomic<uint64_t> container_bound;          // on container bytes alone
  std::atomic<uint64_t> lease_bound;              // on the number of leases
  alignas(64) std::atomic<uint64_t> total_held;   // reserved + committed,
                                                  // container + node
  std::atomic<uint64_t> container_held;           // of these, container-charged
  alignas(64) std::atomic<uint64_t> leases;       // count
  std::atomic<uint64_t> reserves_granted;         // count, ever
  std::atomic<uint64_t> reserves_refused;         // count, ever
  std::atomic<uint64_t> peak_total_held;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Which bound refused a reserve.
enum class Bound : uint8_t { kNone, kTotal, kContainer, kLeases };

struct ReserveResult {
  Bound refused_by = Bound::kNone;
  uint64_t needed = 0;  // as that bound counts: bytes, or leases
  uint64_t held = 0;    // at that moment
  uint64_t bound = 0;
  constexpr bool ok() const { return refused_by == Bound::kNone; }
};

struct Balance {
  Charge held;
  uint64_t total_bound, container_bound, lease_bound;
  uint64_t leases, reserves_granted, reserves_refused, peak_total_held;
};

// Where others hold leases beside an account: reserves of it go through here,
// so that what they hold counts too. Each method may be called from any thread.
class Gate {
 public:
  virtual void SetBounds(uint64_t total_bound, uint64_t container_bound,
                         uint64_t lease_bound) = 0;
  virtual ReserveResult Reserve(Charge charge) = 0;
  virtual ReserveResult Commit(Charge reserved, Charge actual) = 0;
  virtual void Release(Charge charge) = 0;
  // What others hold, as far as it is known.
  virtual Charge Leased() const = 0;

 protected:
  ~Gate() = default;
};

// View of a LedgerState; copies are views of the same state. Every method may
// be called from any thread.
class Ledger {
 public:
  // Makes `state` a fresh, empty account without bounds (kUnlimited).
  static void Format(LedgerState& state);
  // Null: no account; the view may only be assigned to.
  // `gate`, if any, changes the state for this view, and outlives it.
  explicit Ledger(LedgerState* state, Gate* gate = nullptr)
      : state_(state), gate_(gate) {}

  // Lowering a bound below what is held is allowed: nothing more is granted
  // until enough is released.
  void SetBounds(uint64_t total_bound, uint64_t container_bound,
                 uint64_t lease_bound = kUnlimited);

  ReserveResult Reserve(Charge charge);
  // Turns a reservation of `reserved` into what was really allocated. Less: the
  // difference returns. More: it is reserved now, and if that is refused the
  // lease stays at `reserved` and the caller must undo the creation and release
  // it. Not counted among the reserves.
  ReserveResult Commit(Charge reserved, Charge actual);
  // Ends a lease of `charge`. Releasing more than is held leaves nothing held;
  // it never wraps.
  void Release(Charge charge);

  // Each figure is exact by itself; beside concurrent changes they are not of
  // one instant, and held.node (total less container) is momentary. `held`
  // includes what is leased beyond the gate.
  Balance balance() const;

 private:
  LedgerState* state_;
  Gate* gate_;
};

}  // namespace purser::ledger
