// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// rdma/<pool>: shares of a pool of devices. Every share gives access to all
// complete devices of the pool. No device: no unit. All devices unhealthy: all
// units unhealthy.
class PoolResource : public Resource {
 public:
  explicit PoolResource(PoolConfig config);

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override;
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override;

 private:
  const PoolConfig config_;
  const std::string name_;
};

}  // namespace purser::plugin
