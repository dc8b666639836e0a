// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_tree_builder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

constexpr size_t kDeepest = 64;
constexpr size_t kUsualEntries = 8;

// So few that comparing each with each takes less time than sorting them.
constexpr size_t kFewEntries = 24;

bool HasRepeatedKeys(const std::vector<YamlEntry>& entries) {
  for (size_t i = 1; i < entries.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (entries[i].key == entries[j].key) return true;
  return false;
}

bool IsNull(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" ||
         text == "NULL";
}

}  // namespace

void YamlTreeBuilder::Scalar(const Properties& properties,
                             std::string_view text, bool bare) {
  CheckTag(properties, {"str", "int", "float", "bool"});
  YamlNode node{.mark = properties.mark};
  if (!bare || !IsNull(text)) {
    node.kind = YamlNode::Kind::kScalar;
    node.text = text;
    node.plain = properties.tag.empty()
                     ? bare
                     : properties.tag != "tag:yaml.org,2002:str";
  }
  Add(std::move(node), properties.anchor);
}

void YamlTreeBuilder::Alias(YamlMark mark, std::string_view anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    Fault(mark, fmt::format("there is no anchor {}", QuoteForMessage(anchor)));
  } else if (IsOpen(found->second)) {
    Fault(mark, "an alias may not stand inside its anchor");
  } else if (AtKey()) {
    return TakeKey(tree_.nodes[found->second], mark);
  } else {
    return Attach(found->second);
  }
  Add(YamlNode{.mark = mark}, "");
}

bool YamlTreeBuilder::Open(const Properties& properties, YamlNode::Kind kind) {
  if (frames_.size() >= kDeepest) {
    Fault(properties.mark,
          fmt::format("nested deeper than {} levels", kDeepest));
    return false;
  }
  CheckTag(properties, {kind == YamlNode::Kind::kList ? "seq" : "map"});
  const bool list = kind == YamlNode::Kind::kList;
  YamlNode node{.kind = kind, .mark = properties.mark};
  node.children =
      static_cast<int>(list ? tree_.lists.size() : tree_.maps.size());
  if (list) {
    tree_.lists.emplace_back();
  } else {
    tree_.maps.emplace_back().reserve(kUsualEntries);
  }
  const int index = static_cast<int>(tree_.nodes.size());
  Add(std::move(node), properties.anchor);
  frames_.push_back({.node = index});
  return true;
}

void YamlTreeBuilder::Close() {
  const YamlNode& node = tree_.nodes[frames_.back().node];
  if (node.kind == YamlNode::Kind::kMap)
    RefuseRepeatedKeys(tree_.maps[node.children]);
  frames_.pop_back();
}

void YamlTreeBuilder::Fault(YamlMark mark, std::string text) {
  tree_.faults.push_back({.mark = mark, .text = std::move(text)});
}

void YamlTreeBuilder::CheckTag(const Properties& properties,
                               std::initializer_list<std::string_view> known) {
  if (properties.tag.empty()) return;
  for (const std::string_view name : known)
    if (properties.tag == fmt::format("tag:yaml.org,2002:{}", name)) return;
  Fault(properties.mark,
        fmt::format("the tag {} is not supported here: remove it",
                    QuoteForMessage(properties.tag)));
}

bool YamlTreeBuilder::AtKey() const {
  return !frames_.empty() && !frames_.back().key.has_value() &&
         tree_.nodes[frames_.back().node].kind == YamlNode::Kind::kMap;
}

bool YamlTreeBuilder::IsOpen(int index) const {
  return std::any_of(frames_.begin(), frames_.end(),
                     [&](const Frame& frame) { return frame.node == index; });
}

// A key is no node, unless it has an anchor or is itself a list or a map.
void YamlTreeBuilder::Add(YamlNode node, std::string_view anchor) {
  const bool key = AtKey();
  if (key) TakeKey(node, node.mark);
  const bool list_or_map =
      node.kind == YamlNode::Kind::kList || node.kind == YamlNode::Kind::kMap;
  if (key && !list_or_map && anchor.empty()) return;
  const int index = static_cast<int>(tree_.nodes.size());
  if (!anchor.empty()) anchors_.insert_or_assign(std::string(anchor), index);
  tree_.nodes.push_back(std::move(node));
  if (!key) Attach(index);
}

// Puts a node into the list or map that is open, as what comes next there. What
// is not written has no place of its own.
void YamlTreeBuilder::Attach(int index) {
  if (frames_.empty()) return;
  Frame& frame = frames_.back();
  const YamlNode& parent = tree_.nodes[frame.node];
  YamlNode& node = tree_.nodes[index];
  const bool null = node.kind == YamlNode::Kind::kNull;
  if (parent.kind == YamlNode::Kind::kList) {
    if (null) node.mark = parent.mark;
    tree_.lists[parent.children].push_back(index);
    return;
  }
  if (null) node.mark = frame.key->mark;
  if (frame.key->id.has_value())
    tree_.maps[parent.children].push_back(
        {.key = *frame.key->id, .key_mark = frame.key->mark, .value = index});
  frame.key.reset();
}

void YamlTreeBuilder::TakeKey(const YamlNode& node, YamlMark mark) {
  Key& key = frames_.back().key.emplace(Key{.id = {}, .mark = mark});
  if (node.kind != YamlNode::Kind::kScalar) {
    Fault(mark, "a key must be plain text");
  } else if (node.plain && node.text == "<<") {
    Fault(mark, "merge keys (<<) are not supported: write the keys out");
  } else {
    key.id = tree_.keys.Id(node.text);
  }
}

// The first of those that are equal stays.
void YamlTreeBuilder::RefuseRepeatedKeys(std::vector<YamlEntry>& entries) {
  if (entries.size() <= kFewEntries && !HasRepeatedKeys(entries)) return;
  std::vector<YamlEntry> order = entries;
  std::stable_sort(
      order.begin(), order.end(),
      [](const YamlEntry& a, const YamlEntry& b) { return a.key < b.key; });
  std::set<std::pair<int, int>> repeated;  // by place
  size_t first = 0;  // of those in `order` with the same key
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i].key != order[first].key) {
      first = i;
      continue;
    }
    Fault(order[i].key_mark,
          fmt::format("{} is given twice, first on line {}: remove one",
                      QuoteForMessage(tree_.keys.Name(order[i].key)),
                      order[first].key_mark.line));
    repeated.emplace(order[i].key_mark.line, order[i].key_mark.column);
  }
  std::erase_if(entries, [&](const YamlEntry& entry) {
    return repeated.contains({entry.key_mark.line, entry.key_mark.column});
  });
}

}  // namespace purser::base
