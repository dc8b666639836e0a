// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace purser::base {

struct MemlockLimit {
  std::optional<uint64_t> soft_bytes;  // RLIMIT_MEMLOCK; nullopt: unlimited
  // CAP_IPC_LOCK is effective in the initial user namespace: the limit does not
  // bind. In another user namespace the kernel does not honour it.
  bool ipc_lock = false;
  bool binds() const { return soft_bytes.has_value() && !ipc_lock; }
};

struct NodeMemory {
  uint64_t total_bytes = 0;      // MemTotal
  uint64_t available_bytes = 0;  // MemAvailable
};

// Of the default size.
struct HugePages {
  uint64_t page_bytes = 0;  // Hugepagesize
  uint64_t free_pages = 0;  // HugePages_Free, of the node
};

// Reads the files anew at each call; any thread. Errors name the file and what
// in it could not be understood.
class ProcReader {
 public:
  explicit ProcReader(std::filesystem::path proc_root = "/proc");
  // /proc/self/limits, status and uid_map.
  absl::StatusOr<MemlockLimit> Memlock() const;
  // Of this network namespace's IPv4 (/proc/net/route); none where it cannot be
  // read.
  std::set<std::string> DefaultRouteNetdevs() const;
  absl::StatusOr<NodeMemory> Memory() const;        // /proc/meminfo
  absl::StatusOr<HugePages> FindHugePages() const;  // the same

 private:
  std::filesystem::path proc_root_;
};

}  // namespace purser::base
