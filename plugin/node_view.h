// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "node_view/live_view.h"
#include "plugin/config/config.h"
#include "plugin/inventory.h"
#include "plugin/served_resources.h"

namespace purser::plugin {

// The node view of what this plugin knows: its devices, its resources, what it
// advertises. Not started; the arguments outlive it.
std::unique_ptr<node_view::LiveView> MakeNodeView(
    const Config& config, const Inventory& inventory,
    const ServedResources& served);

}  // namespace purser::plugin
