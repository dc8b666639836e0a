// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/inventory.h"

namespace purser::plugin {

// Logs what a scan found changed. `before` is nullptr at the first.
void LogChanges(const Snapshot* before, const Snapshot& after);

}  // namespace purser::plugin
