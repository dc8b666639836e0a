// SPDX-License-Identifier: Apache-2.0
//
// Builds the tree of one YAML document from its events, and collects what is
// wrong about them. Internal to base/yaml_tree.cc.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml_tree.h"

namespace purser::base {

class YamlTreeBuilder {
 public:
  explicit YamlTreeBuilder(YamlTree* tree) : tree_(*tree) {}

  // What a node has before it. Empty: none.
  struct Properties {
    YamlMark mark;
    std::string_view tag, anchor;
  };
  // `bare`: without quotes or tag.
  void Scalar(const Properties& properties, std::string_view text, bool bare);
  void Alias(YamlMark mark, std::string_view anchor);
  // A list or a map. False where it is nested too deeply: then nothing more is
  // to be taken.
  bool Open(const Properties& properties, YamlNode::Kind kind);
  void Close();

 private:
  struct Key {
    std::optional<int> id;  // nullopt: a bad one, drop its value
    YamlMark mark;
  };
  struct Frame {
    int node = 0;
    std::optional<Key> key = {};  // of a map: the key whose value comes next
  };

  void Fault(YamlMark mark, std::string text);
  void CheckTag(const Properties& properties,
                std::initializer_list<std::string_view> known);
  bool AtKey() const;
  bool IsOpen(int index) const;
  void Add(YamlNode node, std::string_view anchor);
  void Attach(int index);
  void TakeKey(const YamlNode& node, YamlMark mark);
  void RefuseRepeatedKeys(std::vector<YamlEntry>& entries);

  YamlTree& tree_;
  std::vector<Frame> frames_;  // the lists and maps that are open
  std::map<std::string, int, std::less<>> anchors_;
};

}  // namespace purser::base
