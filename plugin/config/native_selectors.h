// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/strict_yaml.h"
#include "plugin/config/selectors.h"

namespace purser::plugin {

// `key` of a pool: selectors, or a list of them. What is wrong becomes a fault.
std::vector<Selectors> ReadNativeSelectors(base::YamlMap& pool,
                                           std::string_view key);

}  // namespace purser::plugin
