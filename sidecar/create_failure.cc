// SPDX-License-Identifier: Apache-2.0
#include "sidecar/create_failure.h"

#include <cerrno>

#include "rdma/verbs.h"
#include "sidecar/memlock_hint.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

// Rings that the process itself allocates are pinned, so memlock bounds them;
// the kernel's are not.
bool PinsRings(const queue_memory::QueueMemory& memory) {
  return (memory.send + memory.receive + memory.completion +
          memory.shared_receive)
             .container > 0;
}

}  // namespace

Refusal CreateFailure(const char* object, const absl::Status& status,
                      const queue_memory::QueueMemory& predicted,
                      const std::string& proc_root, Counters& counters) {
  const int error = rdma::ErrnoOf(status);
  counters.create_failures.Add(object, rdma::ErrnoName(error));
  Refusal refusal;
  refusal.reason = RefusalReason::kCreateFailed;
  refusal.limit = rdma::ErrnoName(error);
  std::string hint;
  if (error == ENOMEM && PinsRings(predicted)) hint = MemlockHint(proc_root);
  refusal.message = std::string(status.message()) + hint;
  refusal.remedy =
      !hint.empty() ? "let the sidecar pin memory: IPC_LOCK or a higher "
                      "memlock limit"
      : error == ENOMEM
          ? "the device or the node is out of memory or objects: destroy queue "
            "pairs that are not needed, or ask for fewer work requests"
          : "ask for fewer work requests, scatter/gather entries or less "
            "inline "
            "data";
  return refusal;
}

absl::Status LostMeanwhile(const std::string& device) {
  return absl::UnavailableError(
      fmt::format("device {} was lost meanwhile", device));
}

}  // namespace purser::sidecar
