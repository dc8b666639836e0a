// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"

namespace purser::node_view {

// How much of the node's memory the kubelet keeps from pods (system-reserved
// and kube-reserved): the node's memory less the limit of the cgroup that all
// pods are in. `cgroup_root` is the host's, version 2 or 1, with either cgroup
// driver. NotFound: no such cgroup is to be seen, or it has no limit (the
// kubelet does not enforce what it reserves).
absl::StatusOr<uint64_t> ReservedByPodsCgroup(
    const std::filesystem::path& cgroup_root, uint64_t node_memory_bytes);

}  // namespace purser::node_view
