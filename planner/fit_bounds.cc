// SPDX-License-Identifier: Apache-2.0
#include "planner/fit_bounds.h"

#include <algorithm>

#include "planner/completion_queues.h"
#include "planner/completion_room.h"
#include "queue_memory/fit.h"

namespace purser::planner {
namespace {

using queue_memory::Argument;
using queue_memory::LargestThatFits;
using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;
using queue_memory::SharedReceiveQueueRequest;

constexpr uint64_t kOne = 4096;

// The deepest that the device makes, the other side of 1.
uint32_t Deepest(const Device& device, const Group& group, Argument argument) {
  QueuePairRequest request = group.request;
  request.max_send_wr = std::min(request.max_send_wr, 1u);
  request.max_recv_wr = std::min(request.max_recv_wr, 1u);
  return LargestThatFits(kMostDepth, [&](uint32_t depth) {
    return !MemoryOf(device, group, With(request, argument, depth)).refusal;
  });
}

}  // namespace

FitBounds::FitBounds(const Workload& workload, const Device& device)
    : workload_(workload),
      device_(device),
      groups_of_(workload.completion_queues.size()),
      shared_of_(workload.completion_queues.size()) {
  BoundByDevice();
  for (size_t i = 0; i < workload.groups.size(); ++i) {
    const Group& group = workload.groups[i];
    if (!group.completion_queues.has_value()) {
      BoundByOwnQueue(i);
      continue;
    }
    groups_of_[*group.completion_queues].push_back(i);
    if (group.shared_receive_queues.has_value())
      shared_of_[*group.completion_queues].push_back(
          *group.shared_receive_queues);
  }
  for (std::vector<size_t>& shared : shared_of_) {
    std::sort(shared.begin(), shared.end());
    shared.erase(std::unique(shared.begin(), shared.end()), shared.end());
  }
  for (size_t i = 0; i < workload.completion_queues.size(); ++i)
    if (workload.completion_queues[i].cqe != 0) BoundByQueues(i);
}

void FitBounds::BoundByDevice() {
  for (const Group& group : workload_.groups)
    groups_.push_back(
        {.send = {.most = Deepest(device_, group, Argument::kMaxSendWr)},
         .receive = {.most = Deepest(device_, group, Argument::kMaxRecvWr)}});
  for (const SharedReceiveQueues& queues : workload_.shared_receive_queues)
    shared_.push_back(
        {.most = LargestThatFits(kMostDepth, [&](uint32_t max_wr) {
           return !queue_memory::SharedReceiveQueueMemory(
                       device_.provider, device_.limits,
                       {max_wr, queues.request.max_sge})
                       .refusal;
         })});
}

void FitBounds::BoundByOwnQueue(size_t group) {
  const Factor factor = LargestThatFits(UINT32_MAX, [&](Factor each) {
    return HasRoom(device_, workload_.groups[group], Scaled(group, each));
  });
  groups_[group].send.factor = groups_[group].receive.factor = factor;
}

// Completion queues of a given size.
void FitBounds::BoundByQueues(size_t queues) {
  const uint64_t room =
      SizeCompletionQueues(device_, workload_.completion_queues[queues], {})
          .room();
  const Factor factor = LargestThatFits(
      UINT32_MAX, [&](Factor each) { return Needed(queues, each) <= room; });
  for (const size_t group : groups_of_[queues])
    groups_[group].send.factor = groups_[group].receive.factor = factor;
  // Those of several completion queues, by the smallest.
  for (const size_t shared : shared_of_[queues])
    shared_[shared].factor = std::min(shared_[shared].factor, factor);
}

uint64_t FitBounds::Needed(size_t queues, Factor factor) const {
  uint64_t asked = 0, held = 0;
  const auto add = [&](uint64_t count, const Outstanding& each) {
    asked += count * each.asked;
    held += count * each.held;
  };
  for (const size_t i : groups_of_[queues]) {
    const QueuePairRequest request = Scaled(i, factor);
    add(workload_.groups[i].count,
        OutstandingOf(request,
                      MemoryOf(device_, workload_.groups[i], request)));
  }
  for (const size_t i : shared_of_[queues]) {
    const SharedReceiveQueueRequest request = ScaledShared(i, factor);
    const QueueMemory each = queue_memory::SharedReceiveQueueMemory(
        device_.provider, device_.limits, request);
    add(workload_.shared_receive_queues[i].count,
        {request.max_wr, each.shared_receive_ring.slots});
  }
  return EntriesFor(asked, held);
}

uint32_t FitBounds::Scaled(uint32_t depth, Factor factor, const Depth& bound) {
  if (depth == 0) return 0;
  const uint64_t scaled =
      uint64_t{depth} * std::min(factor, bound.factor) / kOne;
  return static_cast<uint32_t>(
      std::max<uint64_t>(1, std::min<uint64_t>(scaled, bound.most)));
}

QueuePairRequest FitBounds::Scaled(size_t group, Factor factor) const {
  QueuePairRequest request = workload_.groups[group].request;
  const auto& [send, receive] = groups_[group];
  request.max_send_wr = Scaled(request.max_send_wr, factor, send);
  request.max_recv_wr = Scaled(request.max_recv_wr, factor, receive);
  return request;
}

SharedReceiveQueueRequest FitBounds::ScaledShared(size_t queues,
                                                  Factor factor) const {
  SharedReceiveQueueRequest request =
      workload_.shared_receive_queues[queues].request;
  request.max_wr = Scaled(request.max_wr, factor, shared_[queues]);
  return request;
}

void FitBounds::Scale(Factor factor, Workload* scaled) const {
  for (size_t i = 0; i < groups_.size(); ++i)
    scaled->groups[i].request = Scaled(i, factor);
  for (size_t i = 0; i < shared_.size(); ++i)
    scaled->shared_receive_queues[i].request = ScaledShared(i, factor);
}

}  // namespace purser::planner
