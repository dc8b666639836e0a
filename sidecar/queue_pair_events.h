// SPDX-License-Identifier: Apache-2.0
//
// What the device tells of one queue pair, handed to whoever waits: completions
// may be there, or the queue pair failed. The device's event thread finds it by
// qp_context, and whoever takes completions of it by its work queue; it is kept
// alive while the subscribers run, so that an event may be acknowledged first:
// ibv_destroy_qp waits for acknowledgements, and a subscriber may end the queue
// pair. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace purser::sidecar {

class QueuePairEvents : public std::enable_shared_from_this<QueuePairEvents> {
 public:
  // `on_event` runs at every completion event and at Close(), on the thread
  // that raised it, until Unsubscribe(); a call that has begun may end after
  // it. After Close() nothing runs any more.
  uint64_t Subscribe(std::function<void()> on_event);
  void Unsubscribe(uint64_t subscription);
  // Whoever subscribes sees what was there before, or is told of what comes
  // after it.
  bool has_subscribers() const { return subscriber_count_ > 0; }

  void CompletionEvent();
  // The device took the queue pair to ERR by itself.
  void FailureEvent() { failed_.store(true, std::memory_order_relaxed); }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void ForgetFailure() { failed_.store(false, std::memory_order_relaxed); }
  void Close();

 private:
  using Subscribers = std::vector<std::pair<uint64_t, std::function<void()>>>;

  std::mutex mutex_;
  Subscribers subscribers_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_subscription_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint32_t> subscriber_count_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace purser::sidecar
