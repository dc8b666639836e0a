// SPDX-License-Identifier: Apache-2.0
#include "plugin/queue_memory_resource.h"

namespace purser::plugin {

QueueMemoryResource::QueueMemoryResource(uint32_t units, uint32_t unit_mib)
    : name_(QueueMemoryResourceName(unit_mib)),
      units_(units),
      unit_bytes_(uint64_t{unit_mib} << 20) {}

Advertisement QueueMemoryResource::Advertise(const Snapshot& snapshot) const {
  if (!snapshot.has_complete_device()) return {};
  return {{UnitRange{.first = 0, .count = units_}}, {}};
}

std::string QueueMemoryResource::Note(const Snapshot& snapshot) const {
  return snapshot.has_complete_device() ? ""
                                        : "no usable RDMA device on this node";
}

absl::StatusOr<v1beta1::ContainerAllocateResponse>
QueueMemoryResource::Allocate(std::span<const std::string> ids,
                              const Snapshot& /*snapshot*/) const {
  v1beta1::ContainerAllocateResponse response;
  (*response.mutable_envs())[std::string(kQueueMemoryVariable)] =
      std::to_string(ids.size() * unit_bytes_);
  return response;
}

}  // namespace purser::plugin
