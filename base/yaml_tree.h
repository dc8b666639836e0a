// SPDX-License-Identifier: Apache-2.0
//
// One YAML document as a tree, with the place of everything in it. The only
// file that knows yaml-cpp is yaml_tree.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purser::base {

struct YamlMark {
  int line = 1, column = 1;  // from 1; a column is a byte
};

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

// Never fails: what is wrong is in `faults`. At most 1 MiB and 64 levels.
YamlTree ParseYamlTree(std::string_view text);

}  // namespace purser::base
