// SPDX-License-Identifier: Apache-2.0
//
// The completion queues of queue pairs: whose they are, what is reserved in
// them, and what they are charged. Shared ones are shared by queue pairs of one
// client, device, class and name alone, so that a client's completions and its
// bytes are never another's; when their last queue pair ends they end, too.
// Never is more reserved in one than it has entries. Any thread.
//
//   QueuePairs ─▶ CompletionQueueSet (account) ─▶ BrokeredCompletionQueue
//        └─▶ CompletionRoom (a queue pair's part of one) ─┘     (the device's)
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "sidecar/admission.h"
#include "sidecar/brokered_completion_queue.h"
#include "sidecar/completion_choice.h"
#include "sidecar/undestroyed.h"

namespace purser::sidecar {

class CompletionQueueSet;

// Receives of a shared receive queue complete in the completion queue of the
// queue pair that they serve, so that there must be room for all of them, once
// for however many of its queue pairs.
struct SharedReceives {
  uint64_t id = 0;  // 0: none
  uint64_t slots = 0;
};

// What one queue pair has of a completion queue. Owned by the queue pair, which
// ends first. Not thread-safe.
class CompletionRoom {
 public:
  CompletionRoom() = default;
  CompletionRoom(CompletionRoom&& other) noexcept;
  CompletionRoom& operator=(CompletionRoom&& other) noexcept;
  ~CompletionRoom() { Release(); }

  const std::shared_ptr<BrokeredCompletionQueue>& queue() const {
    return queue_;
  }
  uint64_t id() const { return id_; }  // 0: it is the queue pair's own
  // Completions that the queue pair may have outstanding.
  uint32_t entries() const { return entries_; }
  // To what the queue pair's own completion queue really takes.
  [[nodiscard]] bool Commit(ledger::Charge actual);
  // Bytes that returned to the budget: those of the completion queue, where the
  // last of its queue pairs has left and the device destroyed it.
  uint64_t Release();

 private:
  friend class CompletionQueueSet;
  friend class CompletionQueues;

  std::shared_ptr<BrokeredCompletionQueue> queue_;  // null: none
  std::shared_ptr<CompletionQueueSet> set_;         // null: its own
  Undestroyed* undestroyed_ = nullptr;
  Lease lease_;  // of its own
  uint64_t id_ = 0;
  uint32_t slots_ = 0, entries_ = 0;
  SharedReceives receives_;
};

// What a listing shows of one.
struct SharedCompletionQueueState {
  uint64_t id = 0;
  uint32_t cqe = 0, queue_pairs = 0, growths = 0;
  uint64_t slots = 0;
  queue_memory::QueueMemory memory;
};

class CompletionQueueSet
    : public std::enable_shared_from_this<CompletionQueueSet> {
 public:
  struct Facts {
    std::shared_ptr<const Owner> owner;
    std::string name;
    std::shared_ptr<const DeviceTraits> device;
  };
  CompletionQueueSet(Facts facts, std::atomic<uint64_t>& last_id,
                     Undestroyed& undestroyed);

  const Facts& facts() const { return facts_; }
  // To be held from Offer() to Room(): nobody else grows, adds or ends one
  // meanwhile.
  std::unique_lock<std::mutex> Hold() { return std::unique_lock(holding_); }
  // `may_grow`: whether those that would have to grow are offered.
  CompletionOffer Offer(CompletionOffer::Kind kind,
                        const SharedReceives& receives, bool may_grow) const;
  // By the grant's choice, of this set's last offer: creates a further one,
  // grows one, or neither; its lease comes out of the grant's. Where one cannot
  // be grown, since the device refuses (which it is not asked again), or the
  // budget has no room for the moment in which there are the old queue and the
  // new: admit again by an offer without growth.
  absl::StatusOr<CompletionRoom> Room(
      const std::shared_ptr<OpenedDevice>& opened,
      const SharedReceives& receives, Grant& grant);
  // Makes those smaller that are larger than their queue pairs need, as far as
  // they would cost less; the bytes that returned. Not while one is being made.
  uint64_t GiveBack();
  std::vector<SharedCompletionQueueState> State() const;

 private:
  friend class CompletionRoom;
  struct Shared {
    uint64_t id = 0;
    std::shared_ptr<BrokeredCompletionQueue> queue;
    Lease lease;
    queue_memory::QueueMemory memory;
    uint32_t cqe = 0;  // entries that it has
    uint32_t queue_pairs = 0, growths = 0;
    uint64_t slots = 0;  // reserved
    bool resizable = true;
    std::map<uint64_t, uint32_t> receives;  // users, by shared receive queue
  };
  // To the choice's size; `growth`: what was reserved for it. Charged for both
  // queues meanwhile. ResourceExhausted: there is no room for that; what makes
  // it smaller is done all the same.
  absl::Status Resize(Shared& shared, const CompletionChoice& choice,
                      Lease growth);
  uint64_t Release(CompletionRoom& room);

  const Facts facts_;
  std::atomic<uint64_t>& last_id_;
  Undestroyed& undestroyed_;
  std::mutex holding_;  // before mutex_; held across calls of the device
  mutable std::mutex mutex_;
  // Changed under both, so that either is enough to read it.
  std::vector<std::unique_ptr<Shared>> queues_;
};

class CompletionQueues {
 public:
  explicit CompletionQueues(Undestroyed& undestroyed)
      : undestroyed_(undestroyed) {}

  // The set of these facts; a new one where nobody uses it.
  std::shared_ptr<CompletionQueueSet> SetOf(CompletionQueueSet::Facts facts,
                                            const OpenedDevice& opened);
  // One of a queue pair's own, by the grant's choice.
  absl::StatusOr<CompletionRoom> OwnRoom(
      const std::shared_ptr<OpenedDevice>& opened,
      const SharedReceives& receives, Grant& grant);
  // Those in use.
  std::vector<std::shared_ptr<CompletionQueueSet>> All() const;
  // As CompletionQueueSet's, of all.
  uint64_t GiveBack();

 private:
  struct Key {
    const OpenedDevice* opened;
    const Owner* owner;  // interned: of a client and its class
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  Undestroyed& undestroyed_;
  std::atomic<uint64_t> last_id_ = 0;
  mutable std::mutex mutex_;
  // A set lives as long as a room in it, or a creation.
  std::map<Key, std::weak_ptr<CompletionQueueSet>> sets_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
