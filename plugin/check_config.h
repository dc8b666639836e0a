// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "plugin/config/config.h"

namespace purser::plugin {

// For --check-config: what a plugin with this configuration would advertise on
// this node now, as a table for people. Reads sysfs; touches nothing of the
// kubelet's.
absl::StatusOr<std::string> DescribeAdvertised(const Config& config);

}  // namespace purser::plugin
