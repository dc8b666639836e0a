// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "base/quantity.h"
#include "base/strict_yaml.h"
#include "base/yaml_document.h"
#include "base/yaml_scalars.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {

struct YamlMap::State {
  std::shared_ptr<YamlDocument> document;
  size_t index = 0;  // in document->maps

  const VisitedMap& map() const { return document->maps[index]; }
  const YamlNode& node(int i) const { return document->tree.nodes[i]; }

  // The last one that is not null, if there are several.
  const YamlEntry* FindEntry(std::string_view key) {
    VisitedMap& visited = document->maps[index];
    const int id = document->tree.keys.Id(key);
    if (!visited.Knows(id)) visited.known_keys.push_back(id);
    if (visited.node < 0) return nullptr;
    const YamlEntry* found = nullptr;
    for (const YamlEntry& entry : document->tree.EntriesOf(node(visited.node)))
      if (IsKey(entry, id, key) &&
          (found == nullptr || node(entry.value).kind != YamlNode::Kind::kNull))
        found = &entry;
    return found;
  }
  bool IsKey(const YamlEntry& entry, int id, std::string_view key) const {
    return entry.key == id ||
           (document->is_json() &&
            document->SameKey(document->tree.keys.Name(entry.key), key));
  }
  // Maps under one key, merged into one: its index.
  int Merged(std::string_view key, int value) {
    YamlTree& tree = document->tree;
    std::vector<YamlEntry> merged;
    int maps = 0;
    for (const YamlEntry& entry : tree.EntriesOf(node(map().node))) {
      const YamlNode& one = node(entry.value);
      if (one.kind != YamlNode::Kind::kMap ||
          !IsKey(entry, tree.keys.Id(key), key))
        continue;
      ++maps;
      const std::vector<YamlEntry>& entries = tree.EntriesOf(one);
      merged.insert(merged.end(), entries.begin(), entries.end());
    }
    if (maps < 2) return value;
    tree.maps.push_back(std::move(merged));
    tree.nodes.push_back({.kind = YamlNode::Kind::kMap,
                          .mark = node(value).mark,
                          .children = static_cast<int>(tree.maps.size()) - 1});
    return static_cast<int>(tree.nodes.size()) - 1;
  }
  // nullptr: absent or null.
  const YamlNode* Find(std::string_view key) {
    const YamlEntry* entry = FindEntry(key);
    if (entry == nullptr) return nullptr;
    const YamlNode& value = node(entry->value);
    return value.kind == YamlNode::Kind::kNull ? nullptr : &value;
  }
  void Fault(YamlMark mark, std::string_view path, std::string_view message) {
    if (map().muted) return;
    if (!map().soft) return document->Fault(mark, path, message);
    *map().softened = true;
    document->Warn(mark, path, message);
  }
  bool Expect(std::string_view key, const YamlNode& value,
              YamlNode::Kind expected, std::string_view what) {
    if (value.kind == expected) return true;
    Fault(value.mark, JoinPath(map().path, key),
          fmt::format("must be {}, not {}", what, DescribeNode(value)));
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
      Fault(value->mark, JoinPath(map().path, key),
            fmt::format("must be {}, not {}{}", what(), DescribeNode(*value),
                        parsed.has_value() ? ": remove the quotes" : ""));
      return false;
    }
    *out = *std::move(parsed);
    return true;
  }
  // Any scalar is one in YAML.
  bool IsString(std::string_view key, const YamlNode& value) {
    if (!document->is_json() || !value.plain) return true;
    Fault(
        value.mark, JoinPath(map().path, key),
        fmt::format("must be a string, not {}: put it in quotes", value.text));
    return false;
  }
  YamlMap Child(VisitedMap child) const {
    child.muted |= map().muted;
    child.soft = map().soft;
    child.softened = map().softened;
    const size_t visited = document->Visit(std::move(child));
    return Of(document, visited);
  }
};

YamlMap::YamlMap(std::shared_ptr<State> state) : state_(std::move(state)) {}

YamlMap YamlMap::Of(std::shared_ptr<YamlDocument> document, size_t index) {
  return YamlMap(std::make_shared<State>(State{std::move(document), index}));
}

std::string YamlMap::path() const { return state_->map().path; }

bool YamlMap::Has(std::string_view key) { return state_->Find(key) != nullptr; }

bool YamlMap::String(std::string_view key, std::string* out) {
  if (state_->document->is_json()) {
    const YamlNode* value = state_->Find(key);
    if (value != nullptr && !state_->IsString(key, *value)) return false;
  }
  return state_->Scalar(
      key, false, [] { return "a string"; },
      [](std::string_view text) { return std::optional<std::string>(text); },
      out);
}

std::string YamlMap::Text(std::string_view key) {
  const YamlNode* value = state_->Find(key);
  return value == nullptr ? "" : value->text;
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
    const std::string name = fmt::format("{}[{}]", key, i);
    const bool is_empty =
        state_->document->is_json() && item.kind == YamlNode::Kind::kNull;
    good &= is_empty ||
            (state_->Expect(name, item, YamlNode::Kind::kScalar, "a string") &&
             state_->IsString(name, item));
    if (good) strings.push_back(item.text);
  }
  if (good) *out = std::move(strings);
  return good;
}

bool YamlMap::MapsOfStrings(std::string_view key, StringMaps* out) {
  const YamlNode* value = state_->Find(key);
  if (value == nullptr ||
      !state_->Expect(key, *value, YamlNode::Kind::kMap, "a map of maps"))
    return false;
  const YamlTree& tree = state_->document->tree;
  StringMaps maps;
  bool good = true;
  for (const YamlEntry& entry : tree.EntriesOf(*value)) {
    const YamlNode& inner = state_->node(entry.value);
    const std::string name(tree.keys.Name(entry.key));
    const std::string path = JoinPath(key, name);
    std::map<std::string, std::string>& strings = maps[name];
    strings.clear();
    if (inner.kind == YamlNode::Kind::kNull) continue;
    if (!state_->Expect(path, inner, YamlNode::Kind::kMap, "a map of strings"))
      return false;
    for (const YamlEntry& string : tree.EntriesOf(inner)) {
      const YamlNode& text = state_->node(string.value);
      const std::string_view text_name = tree.keys.Name(string.key);
      good &= text.kind == YamlNode::Kind::kNull ||
              (state_->Expect(JoinPath(path, text_name), text,
                              YamlNode::Kind::kScalar, "a string") &&
               state_->IsString(JoinPath(path, text_name), text));
      strings[std::string(text_name)] = text.text;
    }
  }
  if (good) *out = std::move(maps);
  return good;
}

YamlMap YamlMap::Map(std::string_view key) {
  VisitedMap child{.mark = state_->map().mark,
                   .path = JoinPath(state_->map().path, key)};
  const YamlEntry* entry = state_->FindEntry(key);
  if (entry == nullptr) return state_->Child(std::move(child));
  const YamlNode& value = state_->node(entry->value);
  child.mark = value.mark;
  if (value.kind == YamlNode::Kind::kNull)
    return state_->Child(std::move(child));
  if (state_->Expect(key, value, YamlNode::Kind::kMap, "a map")) {
    child.node = state_->Merged(key, entry->value);
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
  const std::string path = JoinPath(state_->map().path, key);
  maps.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const int index = items[i];
    const YamlNode& item = state_->node(index);
    const bool is_empty =
        state_->document->is_json() && item.kind == YamlNode::Kind::kNull;
    if (is_empty || item.kind == YamlNode::Kind::kMap ||
        state_->Expect(fmt::format("{}[{}]", key, i), item,
                       YamlNode::Kind::kMap, "a map"))
      maps.push_back(state_->Child({.node = is_empty ? -1 : index,
                                    .mark = item.mark,
                                    .path = fmt::format("{}[{}]", path, i)}));
  }
  return maps;
}

std::vector<YamlMap> YamlMap::MapOrMaps(std::string_view key) {
  const YamlNode* value = state_->Find(key);
  if (value != nullptr && value->kind == YamlNode::Kind::kMap)
    return {Map(key)};
  return Maps(key);
}

void YamlMap::SoftenFaults() {
  VisitedMap& map = state_->document->maps[state_->index];
  map.soft = true;
  map.softened = std::make_shared<bool>();
}

void YamlMap::HardenFaults() {
  state_->document->maps[state_->index].soft = false;
}

bool YamlMap::has_softened_faults() const {
  return state_->map().softened != nullptr && *state_->map().softened;
}

void YamlMap::Fault(std::string_view key, std::string_view message) {
  state_->Fault(Place(key), JoinPath(state_->map().path, key), message);
}

YamlMark YamlMap::Place() const { return state_->map().mark; }

YamlMark YamlMap::Place(std::string_view key) {
  const YamlEntry* entry = state_->FindEntry(key);
  return entry == nullptr ? state_->map().mark
                          : state_->node(entry->value).mark;
}

void YamlMap::Warn(std::string_view key, std::string_view message) {
  if (state_->map().muted) return;
  state_->document->Warn(Place(key), JoinPath(state_->map().path, key),
                         message);
}

}  // namespace purser::base
