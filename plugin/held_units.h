// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace purser::plugin {

// Ids of the units that containers of the node have, by resource.
using HeldUnits = std::map<std::string, std::set<std::string>>;
// Asks for them; at most half a second. An error: it is not known who has what.
// Empty: nobody is to be asked. One thread.
using AskHeldUnits = std::function<absl::StatusOr<HeldUnits>()>;

// Of the kubelet, by its PodResources socket. What goes wrong is logged once.
AskHeldUnits HeldUnitsOfKubelet(const std::string& socket);

}  // namespace purser::plugin
