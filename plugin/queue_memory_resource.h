// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// rdma/wqe-mib: the node's queue memory, in units of 1 MiB. It lasts as long as
// the node has a device that queues could be created on; a port that is down
// takes no memory away.
class QueueMemoryResource : public Resource {
 public:
  explicit QueueMemoryResource(uint32_t units);

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override;
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override;

 private:
  const std::string name_{kQueueMemoryResource};
  const uint32_t units_;
};

// How many units the configuration means on a node with that much memory.
// InvalidArgument when the kubelet could not take that many, or when it is less
// than one; it names the largest that fits. The default fraction is cut to what
// fits instead.
absl::StatusOr<uint32_t> QueueMemoryUnits(const QueueMemoryConfig& config,
                                          uint64_t node_memory_bytes);

}  // namespace purser::plugin
