// SPDX-License-Identifier: Apache-2.0
//
// Posting to and polling from one queue pair: the one place where work requests
// go to the device, whichever way they reached the sidecar. Knows how many
// requests are outstanding, so that the completion queue can never overrun, and
// counts posts, post failures and completions. Knows nothing of gRPC, clients
// or memory regions: scatter/gather entries come in as ibv_sge, already
// checked. Any thread; one lock per work queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "rdma/handles.h"
#include "sidecar/counters.h"

namespace purser::sidecar {

struct PostResult {
  uint32_t posted = 0;   // requests posted, in order
  int error_number = 0;  // of request [posted]; 0: all were posted
  std::string message;
};

struct Completion {
  ibv_wc wc{};
  bool receive = false;
};

class WorkQueue {
 public:
  struct Capacity {
    uint32_t send_slots = 0;  // what the rings really take
    uint32_t recv_slots = 0;
    uint32_t cqe = 0;  // what the completion queue really takes
  };
  // The handles outlive the work queue. Work requests are posted signalled.
  WorkQueue(rdma::Verbs& verbs, ibv_qp* qp, ibv_cq* cq,
            ibv_comp_channel* channel, Capacity capacity, Counters& counters);

  // Each request's `next` is set here.
  PostResult PostSend(std::span<ibv_send_wr> requests);
  PostResult PostReceive(std::span<ibv_recv_wr> requests);
  // Up to `max_entries`; waits up to `wait` for the first, by the completion
  // channel.
  absl::StatusOr<std::vector<Completion>> Poll(uint32_t max_entries,
                                               std::chrono::milliseconds wait);

  uint64_t outstanding_sends() const;
  uint64_t outstanding_receives() const;
  // A modify to RESET drops posted requests without completions and purges the
  // queue.
  void Reset();

 private:
  rdma::Verbs& verbs_;
  ibv_qp* const qp_;
  ibv_cq* const cq_;
  ibv_comp_channel* const channel_;
  const Capacity capacity_;
  Counters& counters_;
  mutable std::mutex mutex_;
  uint64_t outstanding_sends_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t outstanding_receives_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace purser::sidecar
