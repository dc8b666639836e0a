// SPDX-License-Identifier: Apache-2.0
//
// One YAML document as a tree, with the place of everything in it. The only
// file that knows libyaml is yaml_tree.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml_mark.h"

namespace purser::base {

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry {
    std::string key;
    YamlMark key_mark;
    int value = 0;  // index of a node
  };
  Kind kind = Kind::kNull;
  YamlMark mark;               // of a null: its key's or its list's
  std::string text;            // of a scalar
  bool plain = false;          // a scalar without quotes
  std::vector<int> items;      // of a list: indexes of nodes
  std::vector<Entry> entries;  // of a map, in document order
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
  std::vector<YamlFault> faults;
  // The text could not be read to its end: the nodes say nothing about it.
  bool broken = false;
};

// Never fails: what is wrong is in `faults`, as are more than `longest` bytes
// and more than 64 levels.
YamlTree ParseYamlTree(std::string_view text, size_t longest);

}  // namespace purser::base
