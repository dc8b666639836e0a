// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "rdma/discovery.h"
#include "rdma/verbs.h"

namespace purser::plugin {

// How many queue pairs a device can have, as it says itself. It is opened for
// that, for a moment, which takes a privilege that the plugin need not have;
// the answer is kept as long as the device has the same uverbs device. A
// failure is tried again at the next call. One thread.
class QueuePairLimits {
 public:
  explicit QueuePairLimits(rdma::Verbs& verbs);
  absl::StatusOr<uint64_t> MaxQp(const rdma::SysfsDevice& device);

 private:
  rdma::Verbs& verbs_;
  std::map<std::string, uint64_t> known_;  // by device and uverbs device
};

}  // namespace purser::plugin
