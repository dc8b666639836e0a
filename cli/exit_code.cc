// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_code.h"

#include "client/refusal.h"

namespace purser::cli {

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kOk;
  auto refusal = client::RefusalOf(status);
  if (!refusal) return kFailure;
  switch (refusal->reason()) {
    case v1::REASON_BUDGET:
    case v1::REASON_DEVICE_LIMIT:
    case v1::REASON_QUEUE_PAIR_COUNT:
    case v1::REASON_PRESSURE:
    case v1::REASON_CLASS_SHARE:
      return kRefused;
    case v1::REASON_INVALID:
      return kUsage;
    default:
      return kFailure;
  }
}

}  // namespace purser::cli
