// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma/verbs.h"
#include "sidecar/config.h"

namespace purser::sidecar {

// The devices to open: those of the config, else all that this container was
// given, which sysfs alone does not tell: it shows every device of the node.
// FailedPrecondition where there is none says what is missing, the driver, the
// network namespace, the device of that name, the device node or the provider's
// library, and where to get it.
absl::StatusOr<std::vector<std::string>> ChooseDevices(const Config& config,
                                                       rdma::Verbs& verbs);

}  // namespace purser::sidecar
