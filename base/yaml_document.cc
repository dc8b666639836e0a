// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_document.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

constexpr size_t kMostFaults = 100;
constexpr size_t kMostKeysListed = 20;

std::string_view KindName(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kScalar:
      return "a scalar";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "unknown";
}

std::string UnknownKey(std::string_view key, const VisitedMap& map,
                       const YamlKeys& keys) {
  std::set<std::string_view> sorted;
  for (const int known : map.known_keys) sorted.insert(keys.Name(known));
  const std::vector<std::string_view> known(sorted.begin(), sorted.end());
  const std::string suggestion = DidYouMean(key, known);
  if (!suggestion.empty()) return "unknown key" + suggestion;
  if (known.empty()) return "unknown key: none is expected here";
  const auto end = known.begin() + static_cast<std::ptrdiff_t>(
                                       std::min(known.size(), kMostKeysListed));
  return fmt::format("unknown key: there are {}{}",
                     fmt::join(known.begin(), end, ", "),
                     end == known.end() ? "" : ", ...");
}

}  // namespace

std::string JoinPath(std::string_view path, std::string_view key) {
  if (path.empty() || key.empty()) return fmt::format("{}{}", path, key);
  return fmt::format("{}.{}", path, key);
}

std::string DescribeNode(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar) return QuoteForMessage(node.text);
  return std::string(KindName(node.kind));
}

bool YamlDocument::SameKey(std::string_view a, std::string_view b) const {
  return is_json() ? absl::EqualsIgnoreCase({a.data(), a.size()},
                                            {b.data(), b.size()})
                   : a == b;
}

size_t YamlDocument::Visit(VisitedMap map) {
  maps.push_back(std::move(map));
  return maps.size() - 1;
}

void YamlDocument::Fault(YamlMark mark, std::string_view path,
                         std::string_view message) {
  tree.faults.push_back(
      {.mark = mark, .text = fmt::format("{}: {}", path, message)});
}

void YamlDocument::Warn(YamlMark mark, std::string_view path,
                        std::string_view message) {
  warnings.push_back(
      {.mark = mark, .text = fmt::format("{}: {}", path, message)});
}

bool VisitedMap::Knows(int key) const {
  return std::find(known_keys.begin(), known_keys.end(), key) !=
         known_keys.end();
}

bool YamlDocument::Knows(const VisitedMap& map, int key) const {
  return map.Knows(key) ||
         (is_json() && std::any_of(map.known_keys.begin(), map.known_keys.end(),
                                   [&](int known) {
                                     return SameKey(tree.keys.Name(known),
                                                    tree.keys.Name(key));
                                   }));
}

void YamlDocument::AddKeyFaults(std::vector<Told>* all) const {
  for (const VisitedMap& map : maps) {
    if (map.node < 0 || map.muted) continue;
    std::set<std::string> seen;
    for (const YamlEntry& entry : tree.EntriesOf(tree.nodes[map.node])) {
      const std::string& key = tree.keys.Name(entry.key);
      const bool known = Knows(map, entry.key);
      // In YAML the parser has told it.
      const bool repeated =
          is_json() && known && !seen.insert(absl::AsciiStrToLower(key)).second;
      if (!known || repeated)
        all->push_back({.mark = entry.key_mark,
                        .map = &map,
                        .key = key,
                        .repeated = repeated});
    }
  }
}

std::string YamlDocument::Text(const Told& told) const {
  std::string text(told.text);
  if (told.map != nullptr) {
    text = told.repeated ? "is given twice; the last one counts"
                         : UnknownKey(told.key, *told.map, tree.keys) +
                               (is_json() ? "; it is ignored" : "");
    text = fmt::format("{}: {}", JoinPath(told.map->path, told.key), text);
  }
  return fmt::format("{}:{}:{}: {}", name, told.mark.line, told.mark.column,
                     text);
}

std::vector<std::string> YamlDocument::FaultLines() const {
  return Lines(tree.faults, !is_json(), "faults");
}

std::vector<std::string> YamlDocument::WarningLines() const {
  return Lines(warnings, is_json(), "warnings");
}

std::vector<std::string> YamlDocument::Lines(
    const std::vector<YamlFault>& faults, bool with_keys,
    std::string_view noun) const {
  std::vector<Told> all;
  for (const YamlFault& fault : faults)
    all.push_back({.mark = fault.mark, .text = fault.text});
  if (with_keys) AddKeyFaults(&all);
  const auto place = [](const Told& told) {
    return std::tie(told.mark.line, told.mark.column);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Told& a, const Told& b) {
    return place(a) < place(b);
  });
  // A key that is asked for twice shows its fault twice.
  const auto end =
      std::unique(all.begin(), all.end(), [&](const Told& a, const Told& b) {
        return place(a) == place(b) && a.text == b.text && a.key == b.key;
      });
  all.erase(end, all.end());
  std::vector<std::string> lines;
  for (const Told& told : all) {
    if (lines.size() == kMostFaults) {
      lines.push_back(fmt::format("{}: and {} more {}", name,
                                  all.size() - kMostFaults, noun));
      break;
    }
    lines.push_back(Text(told));
  }
  return lines;
}

}  // namespace purser::base
