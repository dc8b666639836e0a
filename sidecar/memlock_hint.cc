// SPDX-License-Identifier: Apache-2.0
#include "sidecar/memlock_hint.h"

#include "base/proc.h"
#include "base/quantity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {

std::string MemlockHint(const std::string& proc_root) {
  const absl::StatusOr<base::MemlockLimit> memlock =
      base::ProcReader(proc_root).Memlock();
  if (!memlock.ok() || !memlock->binds()) return "";
  return fmt::format(
      "; RLIMIT_MEMLOCK is {} and binds this process, since it has no "
      "CAP_IPC_LOCK: raise the container runtime's limit on the node "
      "(LimitMEMLOCK=infinity in containerd's systemd unit), or run the "
      "sidecar as uid 0 with the capability IPC_LOCK (the chart's value "
      "sidecar.ipcLock)",
      base::FormatBytes(*memlock->soft_bytes));
}

}  // namespace purser::sidecar
