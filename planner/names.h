// SPDX-License-Identifier: Apache-2.0
//
// Names in a workload.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/strict_yaml.h"

namespace purser::planner {

// As a label of a metric and an id in a picture: up to 63 letters, digits, '-',
// '_' and '.', the first a letter or a digit.
bool IsName(std::string_view name);
// A sentence for one that is none.
std::string NoName(std::string_view name);

// Those of one kind, and which of them anything refers to. Faults go to the
// document.
class Names {
 public:
  explicit Names(std::string_view kind) : kind_(kind) {}

  // Reads `map`'s name, that of what has `index`: a fault where it is missing,
  // no name, or taken.
  void Read(base::YamlMap& map, size_t index, std::string* name);
  // The index of what `map[key]` names; a fault where there is none.
  std::optional<size_t> Refer(base::YamlMap& map, std::string_view key);
  // Also of names that are none, which are told already.
  bool IsUsed(const std::string& name) const;

 private:
  struct Place {
    size_t index = 0;
    int line = 0;
    bool used = false;
  };

  std::string Suggestion(std::string_view name) const;

  std::string_view kind_;
  std::unordered_map<std::string, Place> places_;
};

}  // namespace purser::planner
