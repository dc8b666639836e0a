// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plugin/config/config.h"
#include "rdma/resource_netlink.h"

namespace purser::plugin {

// Whether the node's RDMA devices are seen by all network namespaces or by one
// each (`rdma system`), which decides how a device that is not seen is judged,
// and which pools are of use. Owned by App; the main thread's but for known().
class NamespaceMode {
 public:
  using Open =
      std::function<absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>>()>;
  explicit NamespaceMode(Open open) : open_(std::move(open)) {}

  // Asks the kernel, and logs, when that changes, what it means for the pools.
  // What cannot be told counts as shared, which is the kernel's default.
  bool IsExclusive(const std::vector<PoolConfig>& pools);
  // nullopt: the kernel does not tell.
  std::optional<rdma::NamespaceMode> known() const;

 private:
  const Open open_;
  std::atomic<int> known_ = -1;
};

}  // namespace purser::plugin
