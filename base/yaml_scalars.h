// SPDX-License-Identifier: Apache-2.0
//
// What the text of a scalar means. nullopt: it is no such thing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace purser::base {

// As YAML 1.2 has it: true, True, TRUE and so on, but neither "yes" nor "on".
std::optional<bool> ParseYamlBool(std::string_view text);

// Decimal digits without sign and without leading zeros.
std::optional<uint64_t> ParseYamlUint(std::string_view text);

// "60s", "500ms", "1h30m" or a number of seconds: whole milliseconds from 0 to
// 8760h, which keeps sums with clock readings far from overflow.
std::optional<std::chrono::milliseconds> ParseYamlDuration(
    std::string_view text);

}  // namespace purser::base
