// SPDX-License-Identifier: Apache-2.0
//
// Runs tasks that may block (a verbs call takes milliseconds, or seconds while
// an address is resolved) on a bounded number of threads, in the order in which
// they came, so that no number of callers makes more threads. A thread is
// started when a task finds none idle. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace purser::sidecar {

class Workers {
 public:
  Workers(size_t max_threads, size_t max_waiting)
      : max_threads_(max_threads), max_waiting_(max_waiting) {}
  // Ends when all tasks have run.
  ~Workers();
  // False: `max_waiting` tasks wait already, or no thread could be started.
  [[nodiscard]] bool Run(std::function<void()> task);

 private:
  void Loop();
  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_threads_, max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
