// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/http_server.h"
#include "plugin/config_status.h"
#include "plugin/inventory.h"
#include "plugin/registrar.h"
#include "plugin/served_resources.h"

namespace purser::plugin {

// What /readyz answers: a line for each resource; 503 until the kubelet listens
// to all. A configuration that was refused is said, and changes nothing else.
base::HttpResponse Readiness(const Registrar& registrar,
                             const ServedResources& served,
                             const Inventory& inventory,
                             const ConfigStatus& config_status);

}  // namespace purser::plugin
