// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

namespace purser::cli {

CLI::App* AddNode(CLI::App& app, NodeCommand& node) {
  CLI::App* command =
      app.add_subcommand("node",
                         "Who holds which RDMA queues of this node, by the "
                         "kernel and the kubelet; "
                         "on the node, or in the device plugin's pod");
  command
      ->add_option("--pod-resources-socket", node.pod_resources_socket,
                   "The kubelet's PodResources socket")
      ->capture_default_str();
  command
      ->add_option("--container-log-dir", node.container_log_dir,
                   "Where the kubelet links containers' logs")
      ->capture_default_str();
  command
      ->add_option("--resource-prefix", node.resource_prefix,
                   "Allocations shown: of resources with this prefix; '': of "
                   "all that device plugins have")
      ->capture_default_str();
  command->add_option("--proc-root", node.proc_root, "The host's /proc")
      ->capture_default_str();
  command->add_option("--cgroup-root", node.cgroup_root, "The host's cgroups")
      ->capture_default_str();
  command->add_option("--sysfs-root", node.sysfs_root, "The host's /sys")
      ->capture_default_str();
  AddOutput(*command, node.output);
  return command;
}

}  // namespace purser::cli
