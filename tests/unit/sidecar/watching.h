// SPDX-License-Identifier: Apache-2.0
//
// Small means to see what happens: counts, and what other threads bring about.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "sidecar/counters.h"

namespace purser::sidecar {

inline constexpr std::chrono::seconds kSoon(10);

// The count of these label values; 0 where nothing was counted.
template <typename... Labels>
uint64_t CountOf(const LabeledCounter<Labels...>& counter, Labels... labels) {
  const auto counts = counter.Snapshot();
  const auto found = counts.find(std::tuple(std::move(labels)...));
  return found == counts.end() ? 0 : found->second;
}

// Whether `condition` holds within ten seconds.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Something that happens once or more.
class Occurrence {
 public:
  void Happen() {
    std::lock_guard lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  // Whether it happens within ten seconds.
  bool Wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSoon, [this] { return happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

}  // namespace purser::sidecar
