// SPDX-License-Identifier: Apache-2.0
#include "plugin/flags.h"

#include <CLI/CLI.hpp>

#include "base/status_macros.h"
#include "base/tcp_listener.h"

namespace purser::plugin {
namespace {

constexpr const char* kDescription =
    "Advertises the node's RDMA devices and queue memory to the kubelet and "
    "gives them to containers.\n"
    "Without a configuration it offers rdma/hca (1000 shares of all RDMA "
    "devices of the node) and rdma/wqe-mib\n"
    "(a tenth of the node's memory, in units of 1 MiB). It opens no device and "
    "needs no capability.";

constexpr const char* kFooter =
    "Signals: SIGHUP reads the configuration and scans for devices at once; "
    "SIGTERM stops within 2 seconds.\n"
    "A configuration that changes takes effect at once; a bad one changes "
    "nothing.\n"
    "Exit codes: 0 stopped as told, 1 could not run, 2 the configuration or "
    "command line is wrong.\n"
    "Endpoints: /metrics, /healthz, /readyz (503 with the reasons until the "
    "kubelet listens).";

void AddSwitch(CLI::App& app, const char* name, const char* on, bool* out,
               const char* help) {
  app.add_option_function<std::string>(
         name, [out, on](const std::string& value) { *out = value == on; },
         help)
      ->check(CLI::IsMember(std::vector<std::string>{on, "off"}))
      ->type_name("WHEN");
}

// An empty path is a variable that was not set, never a wish for the defaults.
CLI::Validator NamesSomething() {
  return {[](const std::string& value) -> std::string {
            return value.empty() ? "is empty: name a path, or leave it out"
                                 : "";
          },
          ""};
}

void AddHealthFlags(CLI::App& app, Flags& flags) {
  AddSwitch(app, "--events", "auto", &flags.events,
            "auto: learn of changes from the kernel's events, as far as they "
            "reach this network namespace, and by looking once a second "
            "(default); off: by looking alone");
  AddSwitch(
      app, "--open-devices", "auto", &flags.open_devices,
      "auto: keep the devices open, as far as that is permitted, for "
      "their own events (fatal errors, ports, GIDs, LIDs); off (default)");
  AddSwitch(app, "--health-check", "on", &flags.health_check,
            "on: units of devices that are not healthy are unhealthy "
            "(default); off; for pools whose configuration does not say");
}

}  // namespace

ParsedFlags ParseFlags(int argc, char** argv, const std::string& version) {
  ParsedFlags parsed;
  Flags& flags = parsed.flags;
  CLI::App app(kDescription, "purser-device-plugin");
  app.footer(kFooter);
  app.set_version_flag("--version", "purser-device-plugin " + version);
  auto* config =
      app.add_option("--config", flags.config,
                     "Configuration file: YAML, or the JSON of the shared RDMA "
                     "or the SR-IOV network device plugin")
          ->check(NamesSomething());
  app.add_option("--check-config", flags.check_config,
                 "Check this file, print what would be advertised on this "
                 "node, and exit")
      ->check(NamesSomething())
      ->excludes(config);
  app.add_option("--resource-prefix", flags.parse.sriov_resource_prefix,
                 "Of resources in an SR-IOV plugin's file that have none "
                 "(default intel.com)");
  app.add_option("--kubelet-root-dir", flags.kubelet_root_dir,
                 "The kubelet's --root-dir (default /var/lib/kubelet)");
  app.add_option("--registration", flags.registration,
                 "auto, kubelet-socket or plugins-registry: how the kubelet "
                 "gets to know of the resources (default auto)");
  app.add_option("--installation", flags.installation,
                 "Name of this installation (default purser): a plugin takes "
                 "over from one of the same installation, and does not start "
                 "beside one of another that serves the same resource");
  app.add_option("--metrics-address", flags.metrics_address,
                 "Address of /metrics, /healthz and /readyz (default :9836)");
  app.add_option("--log-level", flags.log_level,
                 "debug, info, warn or error (default info)");
  app.add_option("--sysfs-root", flags.sysfs_root,
                 "Where the node's sysfs is mounted (default /sys)")
      ->check(NamesSomething());
  app.add_option("--dev-root", flags.dev_root,
                 "Where the node's /dev is mounted (default /dev)")
      ->check(NamesSomething());
  AddHealthFlags(app, flags);
  AddNodeViewFlags(app, flags.node_view);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

absl::StatusOr<Config> ConfigFromFlags(const Flags& flags) {
  const std::string& path =
      flags.check_config.empty() ? flags.config : flags.check_config;
  Config config;
  if (!path.empty()) {
    PURSER_ASSIGN_OR_RETURN(config, LoadConfig(path, flags.parse));
  }
  return ApplyFlags(flags, std::move(config));
}

absl::StatusOr<Config> ApplyFlags(const Flags& flags, Config config) {
  if (flags.kubelet_root_dir) {
    if (flags.kubelet_root_dir->empty() ||
        flags.kubelet_root_dir->front() != '/')
      return absl::InvalidArgumentError(
          fmt::format("--kubelet-root-dir: \"{}\" is no absolute path",
                      *flags.kubelet_root_dir));
    config.kubelet_root_dir = *flags.kubelet_root_dir;
  }
  if (flags.registration) {
    PURSER_ASSIGN_OR_RETURN(config.registration,
                            ParseRegistrationMode(*flags.registration));
  }
  if (flags.installation) config.installation = *flags.installation;
  if (flags.log_level) {
    PURSER_ASSIGN_OR_RETURN(config.log_level,
                            base::ParseLogLevel(*flags.log_level));
  }
  if (flags.metrics_address) {
    if (absl::Status s = base::CheckTcpAddress(*flags.metrics_address); !s.ok())
      return absl::InvalidArgumentError(
          fmt::format("--metrics-address: {}", std::string(s.message())));
    config.metrics_address = *flags.metrics_address;
  }
  if (flags.sysfs_root) config.sysfs_root = *flags.sysfs_root;
  if (flags.dev_root) config.dev_root = *flags.dev_root;
  config.events = flags.events;
  config.open_devices = flags.open_devices;
  for (PoolConfig& pool : config.pools)
    pool.health_check = pool.health_check.value_or(flags.health_check);
  config.node_view = flags.node_view;
  return config;
}

}  // namespace purser::plugin
