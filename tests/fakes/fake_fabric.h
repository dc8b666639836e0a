// SPDX-License-Identifier: Apache-2.0
//
// The data path of fake sidecars: queue pairs that move data between memory
// regions as a reliable connection would. A send without a receive at the peer
// waits there for ever (rnr_retry 7) and holds its slot. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::fakes {

class FakeFabric {
 public:
  FakeFabric() = default;
  ~FakeFabric();
  FakeFabric(const FakeFabric&) = delete;
  FakeFabric& operator=(const FakeFabric&) = delete;

  // Returns its qp_num.
  uint32_t AddQueuePair(uint32_t send_slots, uint32_t recv_slots);
  void RemoveQueuePair(uint32_t qp_num);
  void Connect(uint32_t qp_num, uint32_t dest_qp_num);

  // Maps a file; the id is the region's and its rkey. 0: cannot be mapped.
  uint64_t AddRegion(const std::string& path, uint64_t length);
  void RemoveRegion(uint64_t region_id);
  size_t regions() const;

  v1::PostResponse PostSend(uint32_t qp_num, const v1::PostSendRequest& posts);
  v1::PostResponse PostReceive(uint32_t qp_num,
                               const v1::PostReceiveRequest& posts);
  // Waits for the first until `wait` has passed or `cancelled` (asked often).
  v1::PollCompletionsResponse Poll(uint32_t qp_num, uint32_t max_entries,
                                   std::chrono::milliseconds wait,
                                   const std::function<bool()>& cancelled);

  // Flips one bit of the `count`th message delivered from now on.
  void CorruptDelivery(uint64_t count);
  // The next completion of a send has this ibv_wc_status.
  void FailNextSend(int status, const std::string& status_name);

 private:
  struct Region {
    std::byte* data;
    uint64_t length;
  };
  struct QueuePair {
    uint32_t send_slots, recv_slots, dest_qp_num = 0;
    std::deque<v1::SendWorkRequest> sends;
    std::deque<v1::ReceiveWorkRequest> receives;
    std::deque<v1::WorkCompletion> completions;
  };
  void Pump(QueuePair& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(QueuePair& from, QueuePair& to)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies what the request gathers; returns its length.
  uint32_t Place(const v1::SendWorkRequest& send, std::byte* target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::byte* At(const v1::Sge& sge) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::byte* At(const v1::SendWorkRequest& write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  std::condition_variable completed_;
  std::map<uint32_t, QueuePair> queue_pairs_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Region> regions_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_qp_num_ ABSL_GUARDED_BY(mutex_) = 17;
  uint64_t next_region_id_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t corrupt_after_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<v1::WorkCompletion> failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::fakes
