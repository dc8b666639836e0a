// SPDX-License-Identifier: Apache-2.0
#include "planner/staircase.h"

#include <algorithm>

#include "queue_memory/fit.h"

namespace purser::planner {
namespace {

using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;

QueueMemory At(const Device& device, QueuePairRequest request, uint32_t depth) {
  if (request.max_send_wr != 0) request.max_send_wr = depth;
  if (request.max_recv_wr != 0) request.max_recv_wr = depth;
  return queue_memory::QueuePairWithCompletionQueueMemory(
             device.provider, device.limits, request,
             queue_memory::CompletionQueueSize::kHeadroom)
      .memory;
}

}  // namespace

std::vector<Stair> StaircaseOf(const Device& device,
                               const QueuePairRequest& request, uint32_t least,
                               uint32_t most) {
  std::vector<Stair> stairs;
  uint32_t depth = least;
  while (depth <= most) {
    const QueueMemory memory = At(device, request, depth);
    if (memory.refusal) break;
    const uint64_t bytes = memory.total().total();
    if (!stairs.empty() && stairs.back().last + 1 == depth)
      stairs.back().cliff =
          bytes >= stairs.back().bytes + stairs.back().bytes / 5;
    const uint32_t last =
        queue_memory::LargestThatFits(most, [&](uint32_t deeper) {
          if (deeper <= depth) return true;
          const QueueMemory other = At(device, request, deeper);
          return !other.refusal && other.total().total() <= bytes;
        });
    stairs.push_back({.first = depth, .last = last, .bytes = bytes});
    depth = std::max(last + 1, depth + depth / 100);
  }
  return stairs;
}

}  // namespace purser::planner
