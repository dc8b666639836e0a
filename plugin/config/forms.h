// SPDX-License-Identifier: Apache-2.0
//
// The readers of the three forms. Each reads one document into the model;
// InvalidArgument lists all faults, one a line.
#pragma once

#include <string>
#include <string_view>

#include "plugin/config/config.h"

namespace purser::plugin {

absl::StatusOr<Config> ParseNative(const std::string& name,
                                   std::string_view text);
absl::StatusOr<Config> ParseSharedRdma(const std::string& name,
                                       std::string_view text);
absl::StatusOr<Config> ParseSriov(const std::string& name,
                                  std::string_view text,
                                  const std::string& default_prefix);

}  // namespace purser::plugin
