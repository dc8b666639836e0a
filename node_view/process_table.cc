// SPDX-License-Identifier: Apache-2.0
#include "node_view/process_table.h"

#include <utility>

namespace purser::node_view {

ProcessTable::ProcessTable(const Processes& processes)
    : processes_(processes), entries_(kFirstProcess) {}

size_t ProcessTable::Find(pid_t pid) {
  const auto [place, is_new] = by_pid_.try_emplace(pid, kUnknown);
  if (!is_new) return place->second;
  absl::StatusOr<Process> process = processes_.Describe(pid);
  if (!process.ok()) return kUnknown;
  const pid_t of_process = process->pid;
  if (of_process != pid) {
    // Described by its own pid, if that was not done.
    const size_t index = Find(of_process);
    return by_pid_[pid] = index;
  }
  entries_.push_back(*std::move(process));
  return by_pid_[pid] = entries_.size() - 1;
}

}  // namespace purser::node_view
