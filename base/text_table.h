// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace purser::base {

// Lines of cells, each column as wide as its widest cell, two spaces between
// columns, none at a line's end.
class TextTable {
 public:
  enum Align : char { kLeft = 'l', kRight = 'r' };
  // One letter for each column, "lrr"; columns beyond are to the left.
  // `indent`: spaces before each line.
  explicit TextTable(std::string columns, size_t indent = 0);
  void Row(std::vector<std::string> cells);
  std::string Text() const;

 private:
  std::string columns_;
  size_t indent_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace purser::base
