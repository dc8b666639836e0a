// SPDX-License-Identifier: Apache-2.0
#include "plugin/queue_pair_limits.h"

#include "base/status_macros.h"
#include "rdma/handles.h"

namespace purser::plugin {

QueuePairLimits::QueuePairLimits(rdma::Verbs& verbs) : verbs_(verbs) {}

absl::StatusOr<uint64_t> QueuePairLimits::MaxQp(
    const rdma::SysfsDevice& device) {
  const std::string key = device.name + " " + device.uverbs;
  if (const auto known = known_.find(key); known != known_.end())
    return known->second;
  PURSER_ASSIGN_OR_RETURN(const rdma::Context context,
                          rdma::OpenDevice(verbs_, device.name));
  PURSER_ASSIGN_OR_RETURN(const ibv_device_attr attr,
                          verbs_.QueryDevice(context.get()));
  return known_[key] = attr.max_qp > 0 ? static_cast<uint64_t>(attr.max_qp) : 0;
}

}  // namespace purser::plugin
