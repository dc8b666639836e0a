// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/cdi_specs.h"
#include "plugin/config/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// rdma/<pool> where a unit gives access to one device alone: a device of its
// own (PoolUnit::kDevice), or a share of one (kDeviceShare). Ids begin with the
// device's: its PCI address, as those of the SR-IOV plugin, by which the CNI
// plugins for its resources find the netdev; those of shares end with a number:
// "0000:3b:00.2-17".
class DeviceResource : public Resource {
 public:
  // `cdi` outlives it, and may be null.
  explicit DeviceResource(PoolConfig config, const CdiSpecs* cdi = nullptr);

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override;
  std::string Note(const Snapshot& snapshot) const override;
  absl::Status Fits(const Snapshot& snapshot) const override;
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override;
  bool has_preference() const override { return true; }
  std::vector<std::string> Prefer(std::span<const std::string> available,
                                  std::span<const std::string> must_include,
                                  size_t size,
                                  const Snapshot& snapshot) const override;

 private:
  using Devices = std::vector<const Device*>;
  // Of each device.
  uint32_t Shares(const Devices& members) const;
  // Of the device that an id is of, in `members`; its size if of none.
  size_t IndexOf(const std::string& id, const Devices& members) const;

  const PoolConfig config_;
  const std::string name_;
  const CdiSpecs* const cdi_;
};

}  // namespace purser::plugin
