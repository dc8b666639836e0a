// SPDX-License-Identifier: Apache-2.0
//
// Posting to and polling from one queue pair: the one place where work requests
// go to the device, whichever way they reached the sidecar. Knows how many
// requests are outstanding, so that the completion queue, which it may share
// with others, can never overrun, and counts posts, post failures and
// completions. Completions that others took from the queue wait here to be
// fetched. Knows nothing of gRPC, clients or memory regions: scatter/gather
// entries come in as ibv_sge, already checked. Any thread; one lock per work
// queue, after the completion queue's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "rdma/handles.h"
#include "sidecar/brokered_completion_queue.h"
#include "sidecar/completion.h"
#include "sidecar/counters.h"
#include "sidecar/pending_requests.h"
#include "sidecar/post_chain.h"
#include "sidecar/queue_pair_events.h"
#include "sidecar/queue_pair_shape.h"

namespace purser::sidecar {

class BrokeredSharedReceiveQueue;

class WorkQueue {
 public:
  struct Queues {
    std::shared_ptr<BrokeredCompletionQueue> completions;  // of both directions
    std::shared_ptr<BrokeredSharedReceiveQueue> receives;  // null: its own
    std::shared_ptr<QueuePairEvents> events;
  };
  // The queue pair is new (RESET). Close() comes before its end, and
  // `completions` destroys it before this ends. `cqe`: completions that it may
  // have outstanding, its part of the completion queue. `shape` outlives it.
  WorkQueue(rdma::Verbs& verbs, ibv_qp* qp, Queues queues,
            const QueuePairShape& shape, uint32_t cqe, Counters& counters,
            TrafficShares shares = {});

  // Posts the requests in order, signalled, up to the first that fails. Their
  // `next`, `wr_id` and IBV_SEND_SIGNALED are overwritten. An operation that
  // was not declared fails with EOPNOTSUPP.
  PostResult PostSend(std::span<ibv_send_wr> requests);
  PostResult PostReceive(std::span<ibv_recv_wr> requests);
  // Counts and answers a request that was found wrong before it came here.
  PostResult RefuseSend(uint32_t posted, int error_number, std::string message);
  PostResult RefuseReceive(uint32_t posted, int error_number,
                           std::string message);

  // Up to `max_entries` completions, at once. What Close() was given, after it.
  // Whoever waits for others that were taken along is told.
  absl::StatusOr<std::vector<Completion>> Poll(uint32_t max_entries);
  // For who subscribed to events(): once OK, every later completion raises
  // CompletionEvent(); those of before are there to be fetched. May raise it
  // before it returns.
  absl::Status Arm();
  // Takes what is in the completion queue, and raises events as Arm().
  absl::Status Collect();
  // Of what was taken already; does not look at the device.
  absl::StatusOr<std::vector<Completion>> Fetch(uint32_t max_entries);

  // By the completion queue, under its lock: one of this queue pair's. Whether
  // somebody waits for it.
  bool Deliver(const ibv_wc& wc);

  // To be told of every modify that succeeded. RESET drops posted requests
  // without completions, and those not yet fetched are dropped too (mlx5 purges
  // them, soft-RoCE leaves them).
  [[nodiscard]] Wakeups StateChanged(ibv_qp_state state);
  // Nothing is posted or fetched any more after it; wakes the waiters. The
  // first reason stays.
  void Close(absl::Status why);

  // Frees room for completions that were fetched.
  void GiveBack();

  const std::shared_ptr<QueuePairEvents>& events() const {
    return queues_.events;
  }
  ibv_qp* qp() const { return qp_; }
  ibv_cq* cq() const { return queues_.completions->cq(); }
  uint32_t cqe() const { return cqe_; }
  const Traffic& traffic() const { return traffic_; }
  // Posted, and their completions not yet fetched.
  uint64_t outstanding_sends() const;
  uint64_t outstanding_receives() const;
  // Completions taken from the completion queue, not yet fetched.
  uint64_t backlog() const;

 private:
  struct Failure {
    int error_number = 0;
    std::string message;
  };
  template <typename Request, typename Post>
  PostResult PostRequests(std::span<Request> requests, bool receive, Post post);
  // How many of the requests come before the first that was not declared.
  size_t CountDeclared(std::span<const ibv_send_wr> requests) const;
  size_t CountDeclared(std::span<const ibv_recv_wr> requests) const {
    return requests.size();
  }
  // Why the direction takes no posts in this state; error_number 0: it does.
  Failure StateRefusal(bool receive) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Explain(int error_number, bool receive) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PostResult Refuse(bool receive, uint32_t posted, int error_number,
                    std::string message);
  std::optional<Completion> Complete(const ibv_wc& wc)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountFetched(std::span<const Completion> completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those not yet fetched.
  void DropCompletions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t own_outstanding() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return pending_.total() + ready_sends_ + ready_receives_;
  }
  template <typename Count>
  void CountTraffic(Count count);

  rdma::Verbs& verbs_;
  ibv_qp* const qp_;
  const Queues queues_;
  const QueuePairShape& shape_;
  Counters& counters_;
  const TrafficShares shares_;
  Traffic traffic_;
  mutable std::mutex mutex_;
  const uint32_t cqe_;
  ibv_qp_state state_ ABSL_GUARDED_BY(mutex_) = IBV_QPS_RESET;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK: it is open
  PendingRequests pending_ ABSL_GUARDED_BY(mutex_);
  // Taken from the completion queue, from `fetched_` on not yet fetched.
  std::vector<Completion> ready_ ABSL_GUARDED_BY(mutex_);
  uint32_t fetched_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of these, without shared receives.
  uint32_t ready_sends_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t ready_receives_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace purser::sidecar
