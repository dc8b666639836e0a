// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "plugin/config/selectors.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

std::optional<int> ParseIndex(absl::string_view text) {
  int index = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index < 0)
    return std::nullopt;
  return index;
}

std::optional<PhysicalFunctionSelector::Range> ParseRange(
    absl::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<int> first = ParseIndex(text.substr(0, dash));
  const std::optional<int> last = dash == absl::string_view::npos
                                      ? first
                                      : ParseIndex(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return PhysicalFunctionSelector::Range{*first, *last};
}

}  // namespace

absl::StatusOr<PhysicalFunctionSelector> ParsePhysicalFunction(
    std::string_view text) {
  const size_t hash = text.find('#');
  PhysicalFunctionSelector selector{.name = std::string(text.substr(0, hash))};
  bool good = !selector.name.empty();
  if (hash != std::string_view::npos) {
    const absl::string_view ranges(text.data() + hash + 1,
                                   text.size() - hash - 1);
    for (const absl::string_view part : absl::StrSplit(ranges, ',')) {
      const auto range = ParseRange(part);
      good &= range.has_value();
      if (range) selector.ranges.push_back(*range);
    }
  }
  if (good) return selector;
  return absl::InvalidArgumentError(
      fmt::format("{} names no function: write NAME, or NAME#N and NAME#N-M "
                  "for some of its functions, such as \"ens1f0#0-3,7\"",
                  base::QuoteForMessage(text)));
}

}  // namespace purser::plugin
