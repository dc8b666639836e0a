// SPDX-License-Identifier: Apache-2.0
//
// The sidecar's own counters: plain atomics handed by reference to the parts
// that count, read by metrics at scrape time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

namespace purser::sidecar {

// Counts by a small, closed set of label values. Any thread.
template <typename... Labels>
class LabeledCounter {
 public:
  void Add(const Labels&... labels, uint64_t count = 1) {
    std::lock_guard lock(mutex_);
    counts_[std::tuple(labels...)] += count;
  }
  std::map<std::tuple<Labels...>, uint64_t> Snapshot() const {
    std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<Labels...>, uint64_t> counts_;
};

// What goes through the queues of a queue pair, a client or a class.
struct Traffic {
  std::atomic<uint64_t> posts = 0, post_failures = 0;
  std::atomic<uint64_t> completions = 0;        // fetched
  std::atomic<uint64_t> completion_errors = 0;  // of these
};
// Of those that a queue pair counts for beside itself: its client, its class.
// Null: nobody looks.
using TrafficShares = std::array<std::shared_ptr<Traffic>, 2>;

struct Counters {
  LabeledCounter<std::string, std::string> admissions;        // result, reason
  LabeledCounter<std::string, std::string> pressure_changes;  // scope, state
  LabeledCounter<std::string, std::string> create_failures;   // object, errno
  LabeledCounter<std::string> posts;                          // operation
  LabeledCounter<std::string, std::string> post_failures;  // operation, errno
  LabeledCounter<std::string> completions;                 // status
  LabeledCounter<std::string> model_mismatches;            // device
  LabeledCounter<std::string, std::string> destroy_failures;  // object, errno
  // Queue memory that was in no use, given back under pressure.
  std::atomic<uint64_t> given_back_bytes = 0;
};

}  // namespace purser::sidecar
