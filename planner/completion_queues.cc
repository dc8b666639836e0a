// SPDX-License-Identifier: Apache-2.0
#include "planner/completion_queues.h"

#include <algorithm>

#include "base/quantity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatCount;
using queue_memory::QueueMemory;

uint64_t DivideUp(uint64_t a, uint64_t b) {
  return a / b + (a % b == 0 ? 0 : 1);
}

QueueMemory CompletionQueueOf(const Device& device, uint64_t entries) {
  return queue_memory::CompletionQueueMemory(
      device.provider, device.limits,
      static_cast<uint32_t>(std::min<uint64_t>(entries, UINT32_MAX)));
}

// `count` of them, or more where the device has none that is large enough.
uint64_t CountFor(const Device& device, uint64_t needed, uint64_t count) {
  const auto& refusal =
      CompletionQueueOf(device, DivideUp(needed, count)).refusal;
  return refusal.limit == queue_memory::Limit::kMaxCqe && refusal.allowed > 0
             ? DivideUp(needed, refusal.allowed)
             : count;
}

}  // namespace

Outstanding OutstandingOf(const queue_memory::QueuePairRequest& request,
                          const QueueMemory& each) {
  return {uint64_t{request.max_send_wr} +
              (request.uses_srq ? 0 : request.max_recv_wr),
          uint64_t{each.send_ring.slots} + each.receive_ring.slots};
}

QueuesPlan SizeCompletionQueues(const Device& device,
                                const CompletionQueues& queues,
                                const Outstanding& outstanding) {
  QueuesPlan planned{.count = queues.count,
                     .entries = queues.cqe,
                     .asked = outstanding.asked,
                     .held = outstanding.held};
  if (queues.cqe == 0) {
    const uint64_t needed = planned.needed();
    // More than there are queue pairs are refused as one that is too large.
    planned.count = static_cast<uint32_t>(std::min<uint64_t>(
        CountFor(device, needed, queues.count), kMostQueuePairs));
    planned.entries = static_cast<uint32_t>(
        std::min<uint64_t>(DivideUp(needed, planned.count), UINT32_MAX));
  }
  planned.each = CompletionQueueOf(device, planned.entries);
  return planned;
}

std::string HowToHold(const Device& device, const QueuesPlan& planned) {
  const uint64_t needed = planned.needed();
  const uint64_t count = CountFor(device, needed, planned.count);
  const std::string entries = FormatCount(DivideUp(needed, count));
  if (count != planned.count)
    return fmt::format("leave out cqe, or give {} queues of {} entries each",
                       FormatCount(count), entries);
  return fmt::format("leave out cqe, or give {}{} entries",
                     count == 1 ? "" : "each ", entries);
}

}  // namespace purser::planner
