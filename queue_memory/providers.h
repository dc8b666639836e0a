// SPDX-License-Identifier: Apache-2.0
//
// One pair of rules per provider; each in the file of its name. Internal to
// queue_memory/.
#pragma once

#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {

QueueMemory Mlx5QueuePair(const DeviceLimits& limits,
                          const QueuePairRequest& request);
QueueMemory Mlx5CompletionQueue(const DeviceLimits& limits, uint32_t cqe);

QueueMemory RxeQueuePair(const DeviceLimits& limits,
                         const QueuePairRequest& request);
QueueMemory RxeCompletionQueue(const DeviceLimits& limits, uint32_t cqe);

// For providers without a rule of their own.
QueueMemory TextbookQueuePair(const DeviceLimits& limits,
                              const QueuePairRequest& request);
QueueMemory TextbookCompletionQueue(const DeviceLimits& limits, uint32_t cqe);

}  // namespace purser::queue_memory
