// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin/cdi_specs.h"
#include "plugin/config/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// The resources that the configuration asks for on a node with that much
// memory. `cdi` outlives them, and may be null. InvalidArgument: the node does
// not allow that.
absl::StatusOr<std::vector<std::unique_ptr<Resource>>> MakeResources(
    const Config& config, const CdiSpecs* cdi = nullptr);

}  // namespace purser::plugin
