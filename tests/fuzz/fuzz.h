// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace purser::fuzz {

// What must hold whatever the input: a fuzzer stops where it does not.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace purser::fuzz
