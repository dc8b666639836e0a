// SPDX-License-Identifier: Apache-2.0
//
// One YAML document as a tree, with the place of everything in it. The only
// file that knows libyaml is yaml_tree.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/yaml_mark.h"

namespace purser::base {

// Every key once, however many maps have it.
class YamlKeys {
 public:
  YamlKeys() = default;
  YamlKeys(YamlKeys&&) = default;
  YamlKeys& operator=(YamlKeys&&) = default;

  int Id(std::string_view key);  // a new one where it is not known
  const std::string& Name(int id) const {
    return names_[static_cast<size_t>(id)];
  }

 private:
  std::deque<std::string> names_;  // which do not move
  std::unordered_map<std::string_view, int> ids_;
};

// Small, since there may be millions.
struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool plain = false;  // a scalar without quotes
  YamlMark mark;       // of a null: its key's or its list's
  int children = -1;   // of a list or a map: index into that of YamlTree
  std::string text;    // of a scalar
};

struct YamlEntry {
  int key = 0;
  YamlMark key_mark;
  int value = 0;  // index of a node
};

struct YamlFault {
  YamlMark mark;
  std::string text;
};

struct YamlTree {
  // Node 0 is the root (null when the document is empty). Aliases share the
  // node of their anchor, so that the tree is never larger than the text, and
  // there are no cycles.
  std::vector<YamlNode> nodes;
  std::vector<std::vector<int>> lists;       // indexes of nodes
  std::vector<std::vector<YamlEntry>> maps;  // in document order
  YamlKeys keys;
  std::vector<YamlFault> faults;
  // The text could not be read to its end: the nodes say nothing about it.
  bool broken = false;

  // Of a node of that kind.
  const std::vector<int>& ItemsOf(const YamlNode& list) const {
    return lists[static_cast<size_t>(list.children)];
  }
  const std::vector<YamlEntry>& EntriesOf(const YamlNode& map) const {
    return maps[static_cast<size_t>(map.children)];
  }
};

// Never fails: what is wrong is in `faults`, as are more than `longest` bytes
// and more than 64 levels.
YamlTree ParseYamlTree(std::string_view text, size_t longest);

}  // namespace purser::base
