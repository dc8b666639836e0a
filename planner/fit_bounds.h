// SPDX-License-Identifier: Apache-2.0
//
// How deep the queues of a workload may become, multiplied by one factor: by
// what the device makes, and by what completion queues hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/workload.h"

namespace purser::planner {

// A factor is a whole number of 1/4096.
using Factor = uint32_t;

class FitBounds {
 public:
  FitBounds(const Workload& workload, const Device& device);

  // `scaled`'s depths become those of the workload by `factor`; each that is at
  // its bound stays behind. None is below 1 that was not 0.
  void Scale(Factor factor, Workload* scaled) const;
  // Of the shared receive queue `queues`: a completion queue of a given size.
  bool CompletesInGivenQueue(size_t queues) const {
    return shared_[queues].factor != UINT32_MAX;
  }

 private:
  struct Depth {
    uint32_t most = 0;  // that the device makes
    Factor factor = UINT32_MAX;
  };
  struct GroupBounds {
    Depth send, receive;
  };

  static uint32_t Scaled(uint32_t depth, Factor factor, const Depth& bound);
  queue_memory::QueuePairRequest Scaled(size_t group, Factor factor) const;
  queue_memory::SharedReceiveQueueRequest ScaledShared(size_t queues,
                                                       Factor factor) const;
  void BoundByDevice();
  void BoundByOwnQueue(size_t group);
  void BoundByQueues(size_t queues);
  uint64_t Needed(size_t queues, Factor factor) const;

  const Workload& workload_;
  const Device& device_;
  std::vector<GroupBounds> groups_;
  std::vector<Depth> shared_;
  // Of each completion queue: its groups, and their shared receive queues once.
  std::vector<std::vector<size_t>> groups_of_, shared_of_;
};

}  // namespace purser::planner
