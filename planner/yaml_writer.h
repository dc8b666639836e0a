// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace purser::planner {

// The same document as YAML (libyaml). Strings are quoted, so that none is
// taken for a number.
std::string ToYaml(const nlohmann::ordered_json& document);

}  // namespace purser::planner
