// SPDX-License-Identifier: Apache-2.0
#include "node_view/undeclared.h"

#include <algorithm>
#include <utility>

namespace purser::node_view {
namespace {

// An owner's excess, shared out over its devices; what rounding leaves is the
// last one's.
void ShareOut(uint64_t excess, uint64_t held,
              const std::vector<const Holding*>& holdings,
              std::map<std::string, uint64_t>& undeclared) {
  uint64_t left = excess;
  for (const Holding* holding : holdings) {
    const uint64_t share =
        holding == holdings.back()
            ? left
            : static_cast<uint64_t>(static_cast<unsigned __int128>(excess) *
                                    holding->bytes.total() / held);
    undeclared[holding->device] += share;
    left -= share;
  }
}

bool CanBeTold(const std::vector<Holding>& holdings, bool any_units) {
  bool any_unknown = false, any_seen = false, any_unnamed = false;
  for (const Holding& holding : holdings) {
    any_unknown |= holding.kind == OwnerKind::kUnknown;
    any_seen |= holding.kind == OwnerKind::kContainer ||
                holding.kind == OwnerKind::kHost;
    any_unnamed |= holding.kind == OwnerKind::kContainer && !holding.named;
  }
  return (any_seen || !any_unknown) && !(any_unnamed && any_units);
}

}  // namespace

std::optional<std::map<std::string, uint64_t>> UndeclaredBytes(
    const std::vector<Holding>& holdings,
    const std::vector<Allocation>& allocations,
    const std::function<uint64_t(const std::string& resource)>& unit_bytes) {
  std::map<ContainerName, uint64_t> declared;
  for (const Allocation& allocation : allocations) {
    if (const uint64_t bytes = unit_bytes(allocation.resource))
      declared[allocation.holder] += bytes * allocation.units;
  }
  if (!CanBeTold(holdings, !declared.empty())) return std::nullopt;

  std::map<std::pair<OwnerKind, ContainerName>, std::vector<const Holding*>>
      by_owner;
  std::map<std::string, uint64_t> undeclared;
  for (const Holding& holding : holdings) {
    undeclared[holding.device];
    if (holding.kind != OwnerKind::kKernel)
      by_owner[{holding.kind, holding.owner}].push_back(&holding);
  }
  for (const auto& [owner, of_owner] : by_owner) {
    uint64_t held = 0;
    for (const Holding* holding : of_owner) held += holding->bytes.total();
    const auto found = owner.first == OwnerKind::kContainer
                           ? declared.find(owner.second)
                           : declared.end();
    const uint64_t units = found == declared.end() ? 0 : found->second;
    if (held > units) ShareOut(held - units, held, of_owner, undeclared);
  }
  return undeclared;
}

}  // namespace purser::node_view
