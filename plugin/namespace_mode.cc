// SPDX-License-Identifier: Apache-2.0
#include "plugin/namespace_mode.h"

#include "base/logging.h"
#include "base/status_macros.h"

namespace purser::plugin {
namespace {

absl::StatusOr<rdma::NamespaceMode> Ask(const NamespaceMode::Open& open) {
  PURSER_ASSIGN_OR_RETURN(const auto transport, open());
  return rdma::ResourceNetlink(*transport).Mode();
}

void LogPools(const std::vector<PoolConfig>& pools) {
  for (const PoolConfig& pool : pools) {
    if (!pool.advertised) continue;
    if (pool.unit == PoolUnit::kDevice) {
      base::LogInfo(
          "RDMA devices belong to one network namespace each (rdma system): a "
          "device of this pool works in a pod that a CNI plugin moves it to",
          {{"pool", pool.full_name()}});
    } else {
      base::LogWarn(
          "RDMA devices belong to one network namespace each (rdma system): "
          "shares of this pool work only in pods on the host network; make it "
          "a pool of whole devices (unit: device), or set `rdma system set "
          "netns shared` before any pod has a device",
          {{"pool", pool.full_name()}});
    }
  }
}

}  // namespace

bool NamespaceMode::IsExclusive(const std::vector<PoolConfig>& pools) {
  const absl::StatusOr<rdma::NamespaceMode> mode = Ask(open_);
  const int now = mode.ok() ? static_cast<int>(*mode) : -1;
  const bool exclusive = mode.ok() && *mode == rdma::NamespaceMode::kExclusive;
  if (known_.exchange(now) != now && exclusive) LogPools(pools);
  return exclusive;
}

std::optional<rdma::NamespaceMode> NamespaceMode::known() const {
  const int known = known_;
  if (known < 0) return std::nullopt;
  return static_cast<rdma::NamespaceMode>(known);
}

}  // namespace purser::plugin
