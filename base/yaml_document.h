// SPDX-License-Identifier: Apache-2.0
//
// What stands behind StrictYaml and YamlMap: a document, which of its maps were
// asked for, and what is wrong with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/strict_yaml.h"
#include "base/yaml_tree.h"

namespace purser::base {

// One map that was asked for.
struct VisitedMap {
  int node = -1;  // -1: not in the document
  YamlMark mark;
  std::string path;
  bool muted = false;  // a fault that is already told explains its others
  bool soft = false;   // faults are warnings …
  std::shared_ptr<bool> softened;  // … and whether there were any
  absl::InlinedVector<int, 16> known_keys;

  bool Knows(int key) const;
};

struct YamlDocument {
  std::string name;
  YamlDialect dialect = YamlDialect::kStrictYaml;
  YamlTree tree;  // with its faults
  std::vector<YamlFault> warnings;
  std::vector<VisitedMap> maps;

  bool is_json() const { return dialect == YamlDialect::kGoJson; }
  bool SameKey(std::string_view a, std::string_view b) const;
  size_t Visit(VisitedMap map);
  void Fault(YamlMark mark, std::string_view path, std::string_view message);
  void Warn(YamlMark mark, std::string_view path, std::string_view message);
  // With those of keys, which show only when all were asked for; one a line, in
  // document order, the first 100.
  std::vector<std::string> FaultLines() const;
  std::vector<std::string> WarningLines() const;

 private:
  // A fault with its text, or that of a key, whose text takes time to find and
  // is made only if it is printed.
  struct Told {
    YamlMark mark;
    std::string_view text;
    const VisitedMap* map = nullptr;
    std::string_view key;
    bool repeated = false;
  };
  bool Knows(const VisitedMap& map, int key) const;
  void AddKeyFaults(std::vector<Told>* all) const;
  std::string Text(const Told& told) const;
  std::vector<std::string> Lines(const std::vector<YamlFault>& faults,
                                 bool with_keys, std::string_view noun) const;
};

// "pools[0]" and "name": "pools[0].name".
std::string JoinPath(std::string_view path, std::string_view key);
// For messages: "a list", or a scalar's text in quotes.
std::string DescribeNode(const YamlNode& node);

}  // namespace purser::base
