// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "base/yaml_tree.h"

namespace purser::base {

// Reads JSON (RFC 8259) as a YamlTree: strings are not plain scalars, numbers,
// true and false are. Keys may be repeated. Bytes that are no UTF-8 become
// U+FFFD. Never fails: what is wrong is the tree's one fault, and then it is
// broken. At most `longest` bytes and 64 levels. The only file that knows
// RapidJSON is json_tree.cc.
YamlTree ParseJsonTree(std::string_view text, size_t longest);

}  // namespace purser::base
