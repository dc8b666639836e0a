// SPDX-License-Identifier: Apache-2.0
#include "sidecar/workers.h"

#include <system_error>
#include <utility>

namespace purser::sidecar {

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

bool Workers::Run(std::function<void()> task) {
  std::lock_guard lock(mutex_);
  if (tasks_.size() >= max_waiting_) return false;
  if (tasks_.size() >= idle_ && !StartThread() && threads_.empty())
    return false;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
  return true;
}

bool Workers::StartThread() {
  if (threads_.size() >= max_threads_) return false;
  try {
    threads_.emplace_back([this] { Loop(); });
    return true;
  } catch (const std::system_error&) {  // the container's limit of processes
    return false;
  }
}

void Workers::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace purser::sidecar
