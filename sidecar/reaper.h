// SPDX-License-Identifier: Apache-2.0
//
// Runs what may block (destroying a client's objects takes a system call each)
// on one thread of its own, in order, so that gRPC's and the devices' threads
// never wait for it. Any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"

namespace purser::sidecar {

class Reaper {
 public:
  Reaper();
  ~Reaper();
  // Dropped after Stop().
  void Run(std::function<void()> task);
  // Ends when all that was given so far has run. Idempotent; not from a task.
  void Stop();

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace purser::sidecar
