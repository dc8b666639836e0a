// SPDX-License-Identifier: Apache-2.0
//
// One queue pair that the sidecar holds for a client, with its room in a
// completion queue and its lease on the budget. Shared by the table of queue
// pairs and by the calls in flight; whoever ends it calls Destroy(), after
// which the calls that still hold it are refused. Any thread.
//
// Its state: what the last modify set, until the device says otherwise by an
// error completion or an asynchronous event, upon which it is queried. A queue
// pair that fails with sends outstanding may have told nobody yet; so
// CurrentState() queries those, and KnownState(), which costs nothing, may be
// behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "rdma/handles.h"
#include "sidecar/admission.h"
#include "sidecar/brokered_shared_receive_queue.h"
#include "sidecar/completion_queues.h"
#include "sidecar/device.h"
#include "sidecar/opened_device.h"
#include "sidecar/queue_pair_shape.h"
#include "sidecar/work_queue.h"

namespace purser::sidecar {

// One of the queue pairs that are counted against a device's max_qp.
class LiveCount {
 public:
  LiveCount() = default;
  // `before`: is set to how many there were.
  LiveCount(std::atomic<uint64_t>& count, uint64_t& before) : count_(&count) {
    before = count.fetch_add(1);
  }
  LiveCount(LiveCount&& other) noexcept
      : count_(std::exchange(other.count_, nullptr)) {}
  LiveCount& operator=(LiveCount&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~LiveCount() {
    if (count_ != nullptr) count_->fetch_sub(1);
  }

 private:
  std::atomic<uint64_t>* count_ = nullptr;
};

class BrokeredQueuePair {
 public:
  // What never changes.
  struct Facts {
    uint64_t id = 0;
    Device* device = nullptr;
    std::shared_ptr<const Owner> owner;
    std::shared_ptr<const QueuePairShape> shape;
    uint32_t qp_num = 0;
    bool detached = false;
    uint64_t completion_queue_id = 0;      // that it shares; 0: its own
    uint64_t shared_receive_queue_id = 0;  // 0: none
  };
  // In the order in which they are made.
  struct Parts {
    std::shared_ptr<OpenedDevice> opened;
    LiveCount live;
    Lease lease;
    std::shared_ptr<QueuePairEvents> events;  // qp_context
    SharedReceiveUse receives;
    CompletionRoom room;
    rdma::QueuePair qp;
  };
  BrokeredQueuePair(Facts facts, Parts parts, Undestroyed& undestroyed,
                    Counters& counters, TrafficShares shares);
  ~BrokeredQueuePair();

  const Facts& facts() const { return facts_; }
  WorkQueue& work_queue() { return work_queue_; }
  QueuePairEvents& events() { return *work_queue_.events(); }

  // FailedPrecondition or InvalidArgument where the present state does not take
  // it; after Destroy() what that was given.
  absl::Status Modify(ibv_qp_attr attr, int attr_mask);
  // As WorkQueue's. An error completion refreshes the state.
  absl::StatusOr<std::vector<Completion>> Poll(uint32_t max_entries);
  absl::StatusOr<std::vector<Completion>> Fetch(uint32_t max_entries);

  ibv_qp_state KnownState() const;
  ibv_qp_state CurrentState();
  uint32_t dest_qp_num() const { return dest_qp_num_; }

  struct Ended {
    uint64_t returned_bytes = 0;
    // The device refused: it is tried again, and the bytes return then.
    bool not_yet_destroyed = false;
  };
  // Ends the queue pair, leaves the completion queue, then returns the lease
  // and lets go of the device. Nothing when it was destroyed before. `why`:
  // what calls on it answer from then on.
  Ended Destroy(const absl::Status& why);

 private:
  static uint64_t Release(Parts& parts);
  void RefreshState();
  absl::StatusOr<ibv_qp_state> QueryState()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetState(ibv_qp_state state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<Completion>> AfterPoll(
      absl::StatusOr<std::vector<Completion>> completions);

  const Facts facts_;
  Undestroyed& undestroyed_;
  std::mutex mutex_;  // modify, query and destroy of the handles
  Parts parts_;       // empty after Destroy()
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // not OK after Destroy()
  std::atomic<ibv_qp_state> state_ = IBV_QPS_RESET;
  std::atomic<uint32_t> dest_qp_num_ = 0;
  WorkQueue work_queue_;
};

}  // namespace purser::sidecar
