// SPDX-License-Identifier: Apache-2.0
#include "node_view/ring_mapping.h"

#include "node_view/lines.h"

namespace purser::node_view {
namespace {

constexpr std::string_view kDirectory = "/infiniband/";
constexpr std::string_view kName = "uverbs";
// Of a device that was removed while the process holds it open.
constexpr std::string_view kDeleted = " (deleted)";

// "uverbs0"; empty: no such path.
std::string_view UverbsOf(std::string_view line) {
  if (line.ends_with(kDeleted)) line.remove_suffix(kDeleted.size());
  const size_t slash = line.rfind('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view name = line.substr(slash + 1);
  uint64_t number = 0;
  if (!name.starts_with(kName) ||
      !ParseNumber(name.substr(kName.size()), 10, &number) ||
      !line.substr(0, slash + 1).ends_with(kDirectory))
    return {};
  return name;
}

}  // namespace

std::optional<RingMapping> ParseRingMapping(std::string_view line) {
  RingMapping mapping;
  mapping.uverbs = UverbsOf(line);
  if (mapping.uverbs.empty()) return std::nullopt;
  const std::string_view range = TakeWord(&line);
  TakeWord(&line);  // permissions
  const std::string_view offset = TakeWord(&line);
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos ||
      !ParseNumber(range.substr(0, dash), 16, &mapping.start) ||
      !ParseNumber(range.substr(dash + 1), 16, &mapping.end) ||
      !ParseNumber(offset, 16, &mapping.offset) || mapping.end < mapping.start)
    return std::nullopt;
  return mapping;
}

}  // namespace purser::node_view
