// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/device.h"
#include "rdma/verbs.h"

namespace purser::cli {

// An RDMA device of this machine: its provider by sysfs, its limits by opening
// it. Where sysfs shows it and it cannot be opened, its provider's defaults,
// which `what` then says. `kernel_release` as uname has it: of a rule that
// depends on the kernel. NotFound lists the devices that there are. `name`
// "": the only one; InvalidArgument where there are several.
absl::StatusOr<planner::Device> FindDevice(rdma::Verbs& verbs,
                                           const std::string& sysfs_root,
                                           const std::string& dev_root,
                                           const std::string& name,
                                           const std::string& kernel_release);

}  // namespace purser::cli
