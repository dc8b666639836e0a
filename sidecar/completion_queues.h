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
  uint64_t id_ = 0, slots_ = 0;
  uint32_t entries_ = 0;
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
    std::string client_id, client_name, class_name, name;
    std::shared_ptr<const DeviceTraits> device;
  };
  CompletionQueueSet(Facts facts, std::atomic<uint64_t>& last_id,
                     Undestroyed& undestroyed);

  const Facts& facts() const { return facts_; }
  // To be held from Offer() to Room(): nobody else grows, adds or ends one
  // meanwhile.
  std::unique_lock<std::mutex> Hold() { return std::unique_lock(holding_); }
  CompletionOffer Offer(CompletionOffer::Kind kind,
                        const SharedReceives& receives) const;
  // By the grant's choice, of this set's last offer: creates a further one,
  // grows one, or neither; its lease comes out of the grant's. Where the device
  // refuses to grow one, that is not offered any more: admit again.
  absl::StatusOr<CompletionRoom> Room(
      const std::shared_ptr<OpenedDevice>& opened,
      const SharedReceives& receives, Grant& grant);
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
    bool may_grow = true;
    std::map<uint64_t, uint32_t> receives;  // users, by shared receive queue
  };
  absl::Status Grow(Shared& shared, Grant& grant);
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

 private:
  struct Key {
    const OpenedDevice* opened;
    std::string client_id, class_name, name;
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
