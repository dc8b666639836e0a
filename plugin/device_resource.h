// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/config/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// rdma/<pool> where a unit is a device: each complete device of the pool is one
// unit, which gives access to it alone. Ids are PCI addresses, as those of the
// SR-IOV plugin, by which the CNI plugins for its resources find the netdev.
class DeviceResource : public Resource {
 public:
  explicit DeviceResource(PoolConfig config);

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override;
  std::string Note(const Snapshot& snapshot) const override;
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override;

 private:
  const PoolConfig config_;
  const std::string name_;
};

// A device's id: its PCI address, or, of a sub-function, its name on the
// auxiliary bus; of soft devices their own name.
std::string UnitId(const rdma::SysfsDevice& device);

}  // namespace purser::plugin
