// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "node_view/pod_cgroup.h"
#include "node_view/ring_mapping.h"

namespace purser::node_view {

struct Process {
  pid_t pid = 0;     // of the process, where a thread was asked for
  std::string name;  // its program's; anyone may set it to anything
  std::optional<PodCgroup> cgroup;  // nullopt: outside pods
};

// Processes under a given /proc, that of the host's pid namespace. Reads anew
// at each call; any thread. NotFound: ended.
class Processes {
 public:
  explicit Processes(std::filesystem::path proc_root);

  // Of a process or one of its threads. Anyone may read it.
  absl::StatusOr<Process> Describe(pid_t pid) const;
  // PermissionDenied: another user's process, without CAP_SYS_PTRACE.
  absl::Status ForEachRing(
      pid_t pid, absl::FunctionRef<void(const RingMapping&)> visit) const;
  absl::StatusOr<std::vector<pid_t>> All() const;

 private:
  std::string PathOf(pid_t pid, const char* file) const;

  const std::filesystem::path proc_root_;
};

}  // namespace purser::node_view
