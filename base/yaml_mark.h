// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace purser::base {

// A place in a YAML document.
struct YamlMark {
  int line = 1, column = 1;  // from 1; a column is a character
};

}  // namespace purser::base
