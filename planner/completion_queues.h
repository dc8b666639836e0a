// SPDX-License-Identifier: Apache-2.0
//
// How large the completion queues are that groups share, and what to do where
// they are too small.
#pragma once

#include <cstdint>
#include <string>

#include "planner/plan.h"

namespace purser::planner {

// Requests whose completions may lie in completion queues at one time: by what
// was asked for, and by what the rings really hold.
struct Outstanding {
  uint64_t asked = 0, held = 0;
};
// Of one queue pair, whose memory is `each`; without those of a shared receive
// queue.
Outstanding OutstandingOf(const queue_memory::QueuePairRequest& request,
                          const queue_memory::QueueMemory& each);

// Of the size that is given, else as many as hold what is needed.
QueuesPlan SizeCompletionQueues(const Device& device,
                                const CompletionQueues& queues,
                                const Outstanding& outstanding);

// For those of a given size that are too small: entries that would do, in more
// queues where the device has none as large.
std::string HowToHold(const Device& device, const QueuesPlan& planned);

}  // namespace purser::planner
