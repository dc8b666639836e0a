// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "node_view/node_view.h"
#include "node_view/view.h"

namespace purser::node_view {

// The view, read when somebody wants it, on a thread of its own: the kernel may
// take long over it, and nobody else shall wait for that. After a reading it
// rests ten times as long as that took, and meanwhile gives out the last one,
// so that a node with very many queue pairs is not kept busy by scrapes. Logs
// what it goes without, when that changes. Owned by App.
class LiveView {
 public:
  explicit LiveView(std::unique_ptr<NodeView> node_view);
  ~LiveView();

  // Begins with a reading. Call once.
  void Start();
  // Within a kernel call's time, which is bounded by the sockets' time-outs.
  void Stop();
  // From any thread: a view that was read since the call, or after `patience`
  // the last one; nullptr: there is none yet.
  std::shared_ptr<const View> Fresh(std::chrono::milliseconds patience) const;

 private:
  void Run(const std::stop_token& stop);
  void Publish(View view);

  const std::unique_ptr<NodeView> node_view_;  // the thread's
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  mutable uint64_t wanted_ ABSL_GUARDED_BY(mutex_) = 1;  // readings
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point rests_until_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const View> view_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace purser::node_view
