// SPDX-License-Identifier: Apache-2.0
#include "planner/names.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

constexpr size_t kLongestName = 63;
// Among more, a suggestion is not worth its time.
constexpr size_t kMostSuggested = 100;

bool IsAlphanumeric(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c));
}

}  // namespace

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || !IsAlphanumeric(name[0]))
    return false;
  for (const char c : name)
    if (!IsAlphanumeric(c) && c != '.' && c != '_' && c != '-') return false;
  return true;
}

std::string NoName(std::string_view name) {
  return fmt::format(
      "{} is no name: write up to {} letters, digits, '-', '_' and '.', the "
      "first a letter or a digit",
      base::QuoteForMessage(name), kLongestName);
}

void Names::Read(base::YamlMap& map, size_t index, std::string* name) {
  if (!map.String("name", name)) {
    if (!map.Has("name")) map.Fault("name", "is required");
    return;
  }
  if (!IsName(*name)) return map.Fault("name", NoName(*name));
  const auto [place, added] =
      places_.try_emplace(*name, Place{index, map.Place("name").line});
  if (!added)
    map.Fault("name", fmt::format("there is a {} \"{}\" already, on line {}",
                                  kind_, *name, place->second.line));
}

std::optional<size_t> Names::Refer(base::YamlMap& map, std::string_view key) {
  std::string name;
  if (!map.String(key, &name)) return std::nullopt;
  const auto found = places_.find(name);
  if (found != places_.end()) {
    found->second.used = true;
    return found->second.index;
  }
  map.Fault(key, fmt::format("there is no {} {}{}", kind_,
                             base::QuoteForMessage(name), Suggestion(name)));
  return std::nullopt;
}

bool Names::IsUsed(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() || found->second.used;
}

std::string Names::Suggestion(std::string_view name) const {
  if (places_.size() > kMostSuggested) return "";
  std::vector<std::string_view> names;
  for (const auto& [known, place] : places_) names.push_back(known);
  return base::DidYouMean(name, names);
}

}  // namespace purser::planner
