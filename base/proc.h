// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"

namespace purser::base {

struct MemlockLimit {
  std::optional<uint64_t> soft_bytes;  // RLIMIT_MEMLOCK; nullopt: unlimited
  bool ipc_lock = false;  // CAP_IPC_LOCK is effective: the limit does not bind
  bool binds() const { return soft_bytes.has_value() && !ipc_lock; }
};

struct NodeMemory {
  uint64_t total_bytes = 0;      // MemTotal
  uint64_t available_bytes = 0;  // MemAvailable
};

class ProcReader {
 public:
  explicit ProcReader(std::filesystem::path proc_root = "/proc");
  absl::StatusOr<MemlockLimit> Memlock()
      const;  // /proc/self/limits, /proc/self/status
  absl::StatusOr<NodeMemory> Memory() const;  // /proc/meminfo

 private:
  std::filesystem::path proc_root_;
};

}  // namespace purser::base
