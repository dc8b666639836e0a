// SPDX-License-Identifier: Apache-2.0
//
// The cost of an object outside its queues. Internal to queue_memory/.
#pragma once

#include "queue_memory/registry.h"

namespace purser::queue_memory {

enum class Object : uint8_t {
  kQueuePair,
  kCompletionQueue,
  kSharedReceiveQueue
};

// Sets memory.context; nothing where it is refused.
void AddContext(const ProviderTraits& traits, const DeviceLimits& limits,
                Object object, QueueMemory& memory);

}  // namespace purser::queue_memory
