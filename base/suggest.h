// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace purser::base {

// ` (did you mean "resources"?)` for the candidate within edit distance 2 (or a
// third of the length), "" if there is none.
std::string DidYouMean(std::string_view unknown,
                       std::span<const std::string_view> candidates);

}  // namespace purser::base
