// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "node_view/processes.h"

namespace purser::node_view {

// The processes of one reading, each described once however many objects it
// has. Lives as long as the reading; one thread.
class ProcessTable {
 public:
  static constexpr size_t kKernel = 0, kUnknown = 1, kFirstProcess = 2;

  explicit ProcessTable(const Processes& processes);

  // Of a process or one of its threads; kUnknown: it has ended, or cannot be
  // described.
  size_t Find(pid_t pid);
  // From kFirstProcess on.
  const Process& operator[](size_t index) const { return entries_[index]; }
  size_t size() const { return entries_.size(); }

 private:
  const Processes& processes_;
  std::vector<Process> entries_;
  std::unordered_map<pid_t, size_t> by_pid_;  // threads, too
};

}  // namespace purser::node_view
