// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace purser::node_view {

// The container that a process is in, as the kubelet and the container runtime
// name its cgroup.
struct PodCgroup {
  std::string pod_uid;       // "" where only the container can be told
  std::string container_id;  // hexadecimal; "" directly in the pod
  auto operator<=>(const PodCgroup&) const = default;
};

// From the text of /proc/PID/cgroup, of cgroup version 1, 2 or both, by either
// cgroup driver (cgroupfs, systemd) and with containerd's, CRI-O's or
// cri-dockerd's spelling. nullopt: a process outside pods.
std::optional<PodCgroup> ParsePodCgroup(std::string_view text);

}  // namespace purser::node_view
