// SPDX-License-Identifier: Apache-2.0
//
// Readers of the parts that all forms share. What is wrong becomes a fault of
// the map.
#pragma once

#include "base/strict_yaml.h"
#include "plugin/config/config.h"

namespace purser::plugin {

QueueMemoryConfig ReadQueueMemory(base::YamlMap map);
// `given`: whether the map is in the document; it switches the resource on.
QueuePairConfig ReadQueuePairs(base::YamlMap map, bool given);

// Keys that the other plugins ignore, so that a file of theirs may have them:
// queueMemory and queuePairs at the root. Neither is advertised unless given.
void ReadPeerCapacity(base::YamlMap& root, Config* config);

}  // namespace purser::plugin
