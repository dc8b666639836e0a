// SPDX-License-Identifier: Apache-2.0
//
// Posting to and polling from one queue pair: the one place where work requests
// go to the device, whichever way they reached the sidecar. Knows how many
// requests are outstanding, so that the completion queue can never overrun, and
// counts posts, post failures and completions. Knows nothing of gRPC, clients
// or memory regions: scatter/gather entries come in as ibv_sge, already
// checked. Any thread; one lock per work queue.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "rdma/handles.h"
#include "sidecar/counters.h"
#include "sidecar/pending_requests.h"
#include "sidecar/queue_pair_events.h"

namespace purser::sidecar {

struct PostResult {
  uint32_t posted = 0;   // requests posted, in order
  int error_number = 0;  // of request [posted]; 0: all were posted
  std::string message;
  absl::Status ended;  // not OK: the work queue was closed, nothing was posted
};

struct Completion {
  ibv_wc wc{};  // wr_id as the caller posted it
  bool receive = false;
};

// "SUCCESS", "WR_FLUSH_ERR", …: the constant without IBV_WC_.
const char* CompletionStatusName(ibv_wc_status status);

class WorkQueue {
 public:
  struct Capacity {
    uint32_t send_slots = 0;  // what the rings really take
    uint32_t recv_slots = 0;
    uint32_t cqe = 0;       // what the completion queue really takes
    uint64_t send_ops = 0;  // declared (send_operations.h); 0: any
  };
  // The queue pair is new (RESET) and its one completion queue serves both
  // directions; both outlive the work queue, or Close() comes before their
  // end.
  WorkQueue(rdma::Verbs& verbs, ibv_qp* qp, ibv_cq* cq,
            std::shared_ptr<QueuePairEvents> events, Capacity capacity,
            Counters& counters);

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
  absl::StatusOr<std::vector<Completion>> Poll(uint32_t max_entries);
  // Requests a completion event, then polls: when nothing is returned, the next
  // completion raises QueuePairEvents::CompletionEvent(). Polling again after
  // the request is what no wake-up gets lost by.
  absl::StatusOr<std::vector<Completion>> ArmAndPoll(uint32_t max_entries);

  // To be told of every modify that succeeded. RESET drops posted requests
  // without completions, and those not yet polled are dropped too (mlx5 purges
  // them, soft-RoCE leaves them).
  void StateChanged(ibv_qp_state state);
  // Nothing touches the device any more after it; wakes the waiters. The first
  // reason stays.
  void Close(absl::Status why);

  ibv_qp* qp() const { return qp_; }
  ibv_cq* cq() const { return cq_; }
  const Capacity& capacity() const { return capacity_; }
  // Posted, not yet polled.
  uint64_t outstanding_sends() const;
  uint64_t outstanding_receives() const;

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
  absl::StatusOr<std::vector<Completion>> PollLocked(uint32_t max_entries)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rdma::Verbs& verbs_;
  ibv_qp* const qp_;
  ibv_cq* const cq_;
  const std::shared_ptr<QueuePairEvents> events_;
  const Capacity capacity_;
  Counters& counters_;
  mutable std::mutex mutex_;
  ibv_qp_state state_ ABSL_GUARDED_BY(mutex_) = IBV_QPS_RESET;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK: it is open
  PendingRequests pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
