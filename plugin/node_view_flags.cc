// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <string>

#include "base/quantity.h"
#include "plugin/node_view_config.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {

void AddNodeViewFlags(CLI::App& app, NodeViewConfig& config) {
  app.add_option_function<std::string>(
         "--node-view",
         [&config](const std::string& value) {
           config.enabled = value == "auto";
         },
         "auto: tell who holds which queue memory, by all that may be read "
         "(default); off")
      ->check(CLI::Validator(
          [](const std::string& value) -> std::string {
            if (value == "auto" || value == "off") return {};
            return fmt::format("'{}' is neither auto nor off", value);
          },
          ""))
      ->type_name("WHEN");
  app.add_option("--pod-resources-socket", config.pod_resources_socket,
                 "The kubelet's PodResources socket (default "
                 "pod-resources/kubelet.sock in its --root-dir)");
  app.add_option("--container-log-dir", config.container_log_dir,
                 "Where the kubelet links containers' logs, whose names are "
                 "read")
      ->capture_default_str();
  app.add_option("--proc-root", config.proc_root,
                 "Where the host's /proc is mounted (default /proc)");
  app.add_option("--cgroup-root", config.cgroup_root,
                 "Where the host's cgroups are mounted")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--node-allocatable-memory",
         [&config](const std::string& value) {
           const auto bytes = base::ParseQuantity(value);
           if (!bytes.ok())
             throw CLI::ValidationError("--node-allocatable-memory",
                                        std::string(bytes.status().message()));
           config.allocatable_memory_bytes = *bytes;
         },
         "The node's allocatable memory (default: by the limit of the cgroup "
         "that all pods are in)")
      ->envname("PURSER_NODE_ALLOCATABLE_MEMORY")
      ->type_name("QUANTITY");
}

}  // namespace purser::plugin
