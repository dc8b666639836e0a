// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

// "log_level", "log-level" and "LogLevel" are one and the same to whoever
// mistypes them.
std::string Normalised(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c != '_' && c != '-')
      result.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
  return result;
}

// Insertions, deletions, substitutions and swaps of neighbours that make `a`
// into `b`.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_previous(b.size() + 1), previous(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_previous, previous);
    std::swap(previous, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1,
                         previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_previous[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string DidYouMean(std::string_view unknown,
                       std::span<const std::string_view> candidates) {
  const std::string wanted = Normalised(unknown);
  std::string_view best;
  // Two letters are half of a word of four: short words allow fewer edits.
  size_t limit =
      wanted.size() <= 3 ? 1 : std::max<size_t>(2, wanted.size() / 3);
  for (const std::string_view candidate : candidates) {
    const std::string name = Normalised(candidate);
    const size_t longer = std::max(name.size(), wanted.size());
    const size_t shorter = std::min(name.size(), wanted.size());
    if (candidate.empty() || longer - shorter > limit) continue;
    const size_t distance = EditDistance(wanted, name);
    if (distance > limit || (distance == limit && !best.empty())) continue;
    best = candidate;
    limit = distance;
  }
  return best.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", best);
}

}  // namespace purser::base
