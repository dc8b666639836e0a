// SPDX-License-Identifier: Apache-2.0
//
// The sidecar's own counters: plain atomics handed by reference to the parts
// that count, read by metrics at scrape time.
#pragma once

#include <cstdint>
#include <map>
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

struct Counters {
  LabeledCounter<std::string, std::string> admissions;        // result, reason
  LabeledCounter<std::string, std::string> pressure_changes;  // scope, state
  LabeledCounter<std::string, std::string> create_failures;   // object, errno
  LabeledCounter<std::string> posts;                          // operation
  LabeledCounter<std::string, std::string> post_failures;  // operation, errno
  LabeledCounter<std::string> completions;                 // status
  LabeledCounter<std::string> model_mismatches;            // device
};

}  // namespace purser::sidecar
