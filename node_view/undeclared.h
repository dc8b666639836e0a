// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node_view/view.h"

namespace purser::node_view {

// The sum over all owners but the kernel of what each holds beyond its units of
// queue memory, by device; where an owner holds on several, its excess is
// shared out as its holdings are. Every device of a holding is in it. nullopt:
// a container's name is not known, so that units in use might be its, or no
// owner can be seen at all.
std::optional<std::map<std::string, uint64_t>> UndeclaredBytes(
    const std::vector<Holding>& holdings,
    const std::vector<Allocation>& allocations,
    const std::function<uint64_t(const std::string& resource)>& unit_bytes);

}  // namespace purser::node_view
