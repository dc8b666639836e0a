// SPDX-License-Identifier: Apache-2.0
//
// One shared receive queue that the sidecar holds for a client: receives that
// whichever of its queue pairs needs one takes, and which complete on that
// queue pair. Shared by the table of them, by queue pairs that use it and by
// calls in flight. Any thread; its lock comes after a work queue's.
//
// A receive that a queue pair had begun to fill when it ended completes nowhere
// on some devices: it then counts as outstanding for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "queue_memory/queue_memory.h"
#include "rdma/handles.h"
#include "sidecar/counters.h"
#include "sidecar/device.h"
#include "sidecar/lease.h"
#include "sidecar/pending_requests.h"
#include "sidecar/post_chain.h"
#include "sidecar/undestroyed.h"

namespace purser::sidecar {

class BrokeredSharedReceiveQueue {
 public:
  struct Facts {
    uint64_t id = 0;
    Device* device = nullptr;
    std::shared_ptr<const Owner> owner;
    ibv_srq_attr attr{};  // as ibv_create_srq wrote back
    uint32_t slots = 0;   // receives that it really takes
    queue_memory::QueueMemory memory;
  };
  // In the order in which they are made.
  struct Parts {
    std::shared_ptr<OpenedDevice> opened;
    Lease lease;
    rdma::SharedReceiveQueue srq;
  };
  BrokeredSharedReceiveQueue(Facts facts, Parts parts, Counters& counters,
                             TrafficShares shares);
  // After End().
  ~BrokeredSharedReceiveQueue() = default;

  const Facts& facts() const { return facts_; }
  // Null after End().
  ibv_srq* srq() const;

  // As WorkQueue's.
  PostResult PostReceive(std::span<ibv_recv_wr> requests);
  PostResult RefuseReceive(uint32_t posted, int error_number,
                           std::string message);
  // By a work queue: a completion of the receive under this key came, and
  // later, completions were fetched.
  std::optional<PendingRequests::Request> Complete(uint64_t key);
  void Fetched(uint32_t count);

  // Posted, and their completions not yet fetched.
  uint64_t outstanding() const;
  uint32_t users() const { return users_; }

  struct Ended {
    uint64_t returned_bytes = 0;
    bool not_yet_destroyed = false;
  };
  // Destroys it and returns its lease; where the device refuses it goes to
  // `undestroyed`. `why`: what posting answers from then on. Once.
  Ended End(const absl::Status& why, Undestroyed& undestroyed);

 private:
  friend class SharedReceiveUse;

  const Facts facts_;
  Counters& counters_;
  const TrafficShares shares_;
  std::atomic<uint32_t> users_ = 0;
  mutable std::mutex mutex_;
  Parts parts_ ABSL_GUARDED_BY(mutex_);
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // OK: it has not
  PendingRequests pending_ ABSL_GUARDED_BY(mutex_);
  uint32_t completed_ ABSL_GUARDED_BY(mutex_) = 0;  // and not yet fetched
};

// That a queue pair uses one, or none.
class SharedReceiveUse {
 public:
  SharedReceiveUse() = default;
  explicit SharedReceiveUse(std::shared_ptr<BrokeredSharedReceiveQueue> queue);
  SharedReceiveUse(SharedReceiveUse&& other) noexcept = default;
  SharedReceiveUse& operator=(SharedReceiveUse&& other) noexcept;
  ~SharedReceiveUse();
  const std::shared_ptr<BrokeredSharedReceiveQueue>& queue() const {
    return queue_;
  }

 private:
  std::shared_ptr<BrokeredSharedReceiveQueue> queue_;
};

}  // namespace purser::sidecar
