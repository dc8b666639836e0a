// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/config/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// rdma/wqe-mib: the node's queue memory, in units of 1 MiB, or, under a name
// that says so, of more. It lasts as long as the node has a device that queues
// could be created on; a port that is down takes no memory away.
class QueueMemoryResource : public Resource {
 public:
  explicit QueueMemoryResource(uint32_t units, uint32_t unit_mib = 1);

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override;
  std::string Note(const Snapshot& snapshot) const override;
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override;

 private:
  const std::string name_;
  const uint32_t units_;
  const uint64_t unit_bytes_;
};

}  // namespace purser::plugin
