// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace purser::base {

// ` (did you mean "resources"?)` for the nearest candidate within edit distance
// 2 (a third of the length if that is more, 1 for words of up to three
// letters),
// "" if there is none. Case, "_" and "-" do not count.
std::string DidYouMean(std::string_view unknown,
                       std::span<const std::string_view> candidates);

}  // namespace purser::base
