// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/config/config.h"
#include "plugin/resource.h"

namespace purser::plugin {

// rdma/qp: the queue pairs that the node's devices can have, in units of the
// configuration's. Those of devices that no pool has do not count.
class QueuePairResource : public Resource {
 public:
  explicit QueuePairResource(QueuePairConfig config);

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override;
  std::string Note(const Snapshot& snapshot) const override;
  absl::Status Fits(const Snapshot& snapshot) const override;
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override;

 private:
  struct Count {
    uint64_t total = 0;
    std::string unknown;     // devices whose number is not known, and why
    bool asked_for = false;  // some are by the configuration's perDevice
  };
  Count CountAll(const Snapshot& snapshot) const;

  const QueuePairConfig config_;
  const std::string name_;
};

}  // namespace purser::plugin
