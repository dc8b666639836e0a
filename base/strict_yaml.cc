// SPDX-License-Identifier: Apache-2.0
#include "base/strict_yaml.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "base/yaml_scalars.h"
#include "base/yaml_tree.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

constexpr size_t kMostFaults = 100;
constexpr size_t kMostKeysListed = 20;
// One map that was asked for.
struct VisitedMap {
  int node = -1;  // -1: not in the document
  YamlMark mark;
  std::string path;
  bool muted = false;  // a fault that is already told explains its others
  std::vector<int> known_keys;

  bool Knows(int key) const {
    return std::find(known_keys.begin(), known_keys.end(), key) !=
           known_keys.end();
  }
};

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

std::string Describe(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar) return QuoteForMessage(node.text);
  return std::string(KindName(node.kind));
}

std::string Join(std::string_view path, std::string_view key) {
  if (path.empty() || key.empty()) return fmt::format("{}{}", path, key);
  return fmt::format("{}.{}", path, key);
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

struct StrictYaml::Document {
  std::string name;
  YamlTree tree;
  std::vector<VisitedMap> maps;

  size_t Visit(VisitedMap map) {
    maps.push_back(std::move(map));
    return maps.size() - 1;
  }
  void Fault(YamlMark mark, std::string_view path, std::string_view message) {
    tree.faults.push_back(
        {.mark = mark, .text = fmt::format("{}: {}", path, message)});
  }
  // The faults with those that show only now, in document order.
  struct Told {
    YamlMark mark;
    std::string_view text;            // of a fault that is known
    const VisitedMap* map = nullptr;  // else the map of an unknown key
    std::string_view key;
  };
  std::vector<Told> AllFaults() const;
  std::string Text(const Told& told) const;
};

std::vector<StrictYaml::Document::Told> StrictYaml::Document::AllFaults()
    const {
  std::vector<Told> all;
  for (const YamlFault& fault : tree.faults)
    all.push_back({.mark = fault.mark, .text = fault.text});
  for (const VisitedMap& map : maps) {
    if (map.node < 0 || map.muted) continue;
    for (const YamlEntry& entry : tree.EntriesOf(tree.nodes[map.node]))
      if (!map.Knows(entry.key))
        all.push_back({.mark = entry.key_mark,
                       .map = &map,
                       .key = tree.keys.Name(entry.key)});
  }
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
  return all;
}

// Only of those that are printed: what is suggested takes its time to find.
std::string StrictYaml::Document::Text(const Told& told) const {
  return fmt::format(
      "{}:{}:{}: {}", name, told.mark.line, told.mark.column,
      told.map == nullptr
          ? std::string(told.text)
          : fmt::format("{}: {}", Join(told.map->path, told.key),
                        UnknownKey(told.key, *told.map, tree.keys)));
}

struct YamlMap::State {
  std::shared_ptr<StrictYaml::Document> document;
  size_t index = 0;  // in document->maps

  const VisitedMap& map() const { return document->maps[index]; }
  const YamlNode& node(int i) const { return document->tree.nodes[i]; }

  const YamlEntry* FindEntry(std::string_view key) {
    VisitedMap& visited = document->maps[index];
    const int id = document->tree.keys.Id(key);
    if (!visited.Knows(id)) visited.known_keys.push_back(id);
    if (visited.node < 0) return nullptr;
    for (const YamlEntry& entry : document->tree.EntriesOf(node(visited.node)))
      if (entry.key == id) return &entry;
    return nullptr;
  }
  // nullptr: absent or null.
  const YamlNode* Find(std::string_view key) {
    const YamlEntry* entry = FindEntry(key);
    if (entry == nullptr) return nullptr;
    const YamlNode& value = node(entry->value);
    return value.kind == YamlNode::Kind::kNull ? nullptr : &value;
  }
  void Fault(YamlMark mark, std::string_view path, std::string_view message) {
    if (!map().muted) document->Fault(mark, path, message);
  }
  bool Expect(std::string_view key, const YamlNode& value,
              YamlNode::Kind expected, std::string_view what) {
    if (value.kind == expected) return true;
    Fault(value.mark, Join(map().path, key),
          fmt::format("must be {}, not {}", what, Describe(value)));
    return false;
  }
  // The scalar at `key` as `parse` reads it. `what()` completes "must be …".
  // With `plain`, one in quotes is a string and so a fault.
  template <typename T, typename What, typename Parse>
  bool Scalar(std::string_view key, bool plain, What what, Parse parse,
              T* out) {
    const YamlNode* value = Find(key);
    if (value == nullptr) return false;
    std::optional<T> parsed;
    if (value->kind == YamlNode::Kind::kScalar) parsed = parse(value->text);
    if (!parsed.has_value() || (plain && !value->plain)) {
      Fault(value->mark, Join(map().path, key),
            fmt::format("must be {}, not {}{}", what(), Describe(*value),
                        parsed.has_value() ? ": remove the quotes" : ""));
      return false;
    }
    *out = *std::move(parsed);
    return true;
  }
  YamlMap Child(VisitedMap child) const {
    child.muted |= map().muted;
    const size_t visited = document->Visit(std::move(child));
    return YamlMap(std::make_shared<State>(State{document, visited}));
  }
};

YamlMap::YamlMap(std::shared_ptr<State> state) : state_(std::move(state)) {}

std::string YamlMap::path() const { return state_->map().path; }

bool YamlMap::Has(std::string_view key) { return state_->Find(key) != nullptr; }

bool YamlMap::String(std::string_view key, std::string* out) {
  return state_->Scalar(
      key, false, [] { return "a string"; },
      [](std::string_view text) { return std::optional<std::string>(text); },
      out);
}

bool YamlMap::Bool(std::string_view key, bool* out) {
  return state_->Scalar(
      key, true, [] { return "true or false"; }, ParseYamlBool, out);
}

bool YamlMap::Uint(std::string_view key, uint64_t min, uint64_t max,
                   uint64_t* out) {
  return state_->Scalar(
      key, true,
      [&] { return fmt::format("a whole number from {} to {}", min, max); },
      [&](std::string_view text) -> std::optional<uint64_t> {
        const std::optional<uint64_t> value = ParseYamlUint(text);
        if (!value.has_value() || *value < min || *value > max)
          return std::nullopt;
        return value;
      },
      out);
}

bool YamlMap::Fraction(std::string_view key, double* out) {
  return state_->Scalar(
      key, false,
      [] { return "a fraction above 0 and up to 1, such as 0.5 or 50%"; },
      ParseFraction, out);
}

bool YamlMap::Bytes(std::string_view key, uint64_t* out) {
  const YamlNode* value = state_->Find(key);
  if (value == nullptr || !state_->Expect(key, *value, YamlNode::Kind::kScalar,
                                          "a number of bytes such as 64Mi"))
    return false;
  const absl::StatusOr<uint64_t> bytes = ParseQuantity(value->text);
  if (!bytes.ok()) {
    Fault(key, std::string(bytes.status().message()));
    return false;
  }
  *out = *bytes;
  return true;
}

bool YamlMap::Duration(std::string_view key, std::chrono::milliseconds* out) {
  return state_->Scalar(
      key, false,
      [] {
        return "a duration of whole milliseconds from 0 to 8760h, such as 60s, "
               "500ms or 5m";
      },
      ParseYamlDuration, out);
}

bool YamlMap::Strings(std::string_view key, std::vector<std::string>* out) {
  const YamlNode* value = state_->Find(key);
  if (value == nullptr ||
      !state_->Expect(key, *value, YamlNode::Kind::kList, "a list of strings"))
    return false;
  std::vector<std::string> strings;
  bool good = true;
  const std::vector<int>& items = state_->document->tree.ItemsOf(*value);
  for (size_t i = 0; i < items.size(); ++i) {
    const YamlNode& item = state_->node(items[i]);
    good &= state_->Expect(fmt::format("{}[{}]", key, i), item,
                           YamlNode::Kind::kScalar, "a string");
    if (good) strings.push_back(item.text);
  }
  if (good) *out = std::move(strings);
  return good;
}

YamlMap YamlMap::Map(std::string_view key) {
  VisitedMap child{.mark = state_->map().mark,
                   .path = Join(state_->map().path, key)};
  const YamlEntry* entry = state_->FindEntry(key);
  if (entry == nullptr) return state_->Child(std::move(child));
  const YamlNode& value = state_->node(entry->value);
  child.mark = value.mark;
  if (value.kind == YamlNode::Kind::kNull)
    return state_->Child(std::move(child));
  if (state_->Expect(key, value, YamlNode::Kind::kMap, "a map")) {
    child.node = entry->value;
  } else {
    child.muted = true;
  }
  return state_->Child(std::move(child));
}

std::vector<YamlMap> YamlMap::Maps(std::string_view key) {
  std::vector<YamlMap> maps;
  const YamlNode* value = state_->Find(key);
  if (value == nullptr ||
      !state_->Expect(key, *value, YamlNode::Kind::kList, "a list of maps"))
    return maps;
  const std::vector<int>& items = state_->document->tree.ItemsOf(*value);
  for (size_t i = 0; i < items.size(); ++i) {
    const int index = items[i];
    const YamlNode& item = state_->node(index);
    const std::string name = fmt::format("{}[{}]", key, i);
    if (state_->Expect(name, item, YamlNode::Kind::kMap, "a map"))
      maps.push_back(state_->Child({.node = index,
                                    .mark = item.mark,
                                    .path = Join(state_->map().path, name)}));
  }
  return maps;
}

void YamlMap::Fault(std::string_view key, std::string_view message) {
  state_->Fault(Place(key), Join(state_->map().path, key), message);
}

YamlMark YamlMap::Place() const { return state_->map().mark; }

YamlMark YamlMap::Place(std::string_view key) {
  const YamlEntry* entry = state_->FindEntry(key);
  return entry == nullptr ? state_->map().mark
                          : state_->node(entry->value).mark;
}

StrictYaml::StrictYaml(std::string name, std::string_view text, size_t longest)
    : document_(std::make_shared<Document>()) {
  document_->name = std::move(name);
  document_->tree = ParseYamlTree(text, longest);
}

StrictYaml::~StrictYaml() = default;

YamlMap StrictYaml::Root() {
  VisitedMap root{.muted = document_->tree.broken};
  const YamlNode& node = document_->tree.nodes[0];
  if (!root.muted && node.kind == YamlNode::Kind::kMap) {
    root.node = 0;
    root.mark = node.mark;
  } else if (!root.muted && node.kind != YamlNode::Kind::kNull) {
    document_->tree.faults.push_back(
        {.mark = node.mark,
         .text = fmt::format("the document must be a map of keys to values, "
                             "not {}",
                             Describe(node))});
    root.muted = true;
  }
  const size_t visited = document_->Visit(std::move(root));
  return YamlMap(
      std::make_shared<YamlMap::State>(YamlMap::State{document_, visited}));
}

absl::Status StrictYaml::Finish() {
  const std::vector<Document::Told> faults = document_->AllFaults();
  if (faults.empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const Document::Told& fault : faults) {
    if (lines.size() == kMostFaults) {
      lines.push_back(fmt::format("{}: and {} more faults", document_->name,
                                  faults.size() - kMostFaults));
      break;
    }
    lines.push_back(document_->Text(fault));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

}  // namespace purser::base
