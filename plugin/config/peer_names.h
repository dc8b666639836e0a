// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/strict_yaml.h"
#include "plugin/config/config.h"
#include "plugin/config/pool_names.h"

namespace purser::plugin {

// Names of resources in the files of other plugins, which check them less. What
// the kubelet would never take is a warning, and the pool is not advertised;
// what no plugin takes is a fault.
class PeerNames {
 public:
  void Take(base::YamlMap& map, PoolConfig* pool);

 private:
  PoolNames names_;
};

}  // namespace purser::plugin
