// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_scalars.h"

#include <charconv>
#include <string>
#include <system_error>

#include "absl/time/time.h"

namespace purser::base {
namespace {

constexpr absl::Duration kLongestDuration = absl::Hours(8760);

}  // namespace

std::optional<bool> ParseYamlBool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::optional<uint64_t> ParseYamlUint(std::string_view text) {
  // YAML 1.1 reads "010" as octal and 1.2 does not: neither is meant here.
  if (text.size() > 1 && text.starts_with('0')) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<std::chrono::milliseconds> ParseYamlDuration(
    std::string_view text) {
  std::string with_unit(text);
  if (text.find_first_not_of("0123456789.") == std::string_view::npos)
    with_unit += "s";
  absl::Duration duration;
  if (!absl::ParseDuration(with_unit, &duration) ||
      duration < absl::ZeroDuration() || duration > kLongestDuration ||
      absl::Trunc(duration, absl::Milliseconds(1)) != duration)
    return std::nullopt;
  return absl::ToChronoMilliseconds(duration);
}

}  // namespace purser::base
