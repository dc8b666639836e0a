// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace purser::plugin {

// The node view: where it reads, by flags alone, since all of it is of the
// node's and the pod's making.
struct NodeViewConfig {
  bool enabled = true;
  // "": pod-resources/kubelet.sock in the kubelet's root directory.
  std::string pod_resources_socket;
  std::string container_log_dir = "/var/log/containers";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string proc_root;  // "": the plugin's own
  std::optional<uint64_t> allocatable_memory_bytes;
};

void AddNodeViewFlags(CLI::App& app, NodeViewConfig& config);

}  // namespace purser::plugin
