// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "rdma/discovery.h"

namespace purser::plugin {

// What may change of a port.
enum class PortTrait { kState, kLinkLayer, kLid, kGids };
inline constexpr size_t kPortTraits = 4;
const char* PortTraitName(PortTrait trait);  // "state", "link_layer", …

struct PortChangeCounts {
  std::string device;
  uint8_t port_num = 0;
  std::array<uint64_t, kPortTraits> counts{};  // by PortTrait
};

// Notices, logs and counts what changes of ports between two scans. A device
// that comes or goes changes nothing. Observe() belongs to the main thread.
class PortChanges {
 public:
  void Observe(const rdma::SysfsDevice& before, const rdma::SysfsDevice& after);
  std::vector<PortChangeCounts> counts() const;

 private:
  void Compare(const std::string& device, const rdma::PortStatus& before,
               const rdma::PortStatus& after);

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, uint8_t>, std::array<uint64_t, kPortTraits>>
      counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
