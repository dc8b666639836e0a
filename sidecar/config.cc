// SPDX-License-Identifier: Apache-2.0
#include "sidecar/config.h"

#include <algorithm>
#include <array>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr uint64_t kMaxClients = 100'000;

// "" where the list is good.
std::string DevicesFault(const std::vector<std::string>& devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].empty())
      return "a device name is empty; names are those of ibv_devices, e.g. "
             "mlx5_0";
    if (std::find(devices.begin(), devices.begin() + i, devices[i]) !=
        devices.begin() + i)
      return fmt::format("device {} is named twice", devices[i]);
  }
  return "";
}

std::string AbsolutePathFault(const std::string& path) {
  if (!path.empty() && path[0] == '/') return "";
  return fmt::format("must be an absolute path, is {}",
                     base::QuoteForMessage(path));
}

void ReadPath(base::YamlMap& map, std::string_view key, std::string* path) {
  if (!map.String(key, path)) return;
  if (const std::string fault = AbsolutePathFault(*path); !fault.empty())
    map.Fault(key, fault);
}

void ReadBudget(base::YamlMap& map, const std::string& name, Config& config) {
  uint64_t bytes = 0;
  if (!map.Bytes("budget", &bytes)) return;
  config.budget_bytes = bytes;
  config.budget_origin = fmt::format("budget in {}", name);
  if (bytes == 0)
    map.Fault("budget",
              "must be more than 0 bytes, e.g. 64Mi; leave it out "
              "so that the other sources decide");
}

void ReadThresholds(base::YamlMap& map, std::string_view key,
                    PressureThresholds* thresholds) {
  if (!map.Has(key)) return;
  base::YamlMap scope = map.Map(key);
  scope.Fraction("tight", &thresholds->tight_used);
  scope.Fraction("critical", &thresholds->critical_used);
  if (thresholds->tight_used >= thresholds->critical_used)
    scope.Fault("tight", fmt::format("must be below critical ({:.4g} %), is "
                                     "{:.4g} %",
                                     thresholds->critical_used * 100,
                                     thresholds->tight_used * 100));
}

// Parts of memory in use; the stalls are the same for both.
void ReadPressure(base::YamlMap& root, LimitsWatch::Options* limits) {
  if (!root.Has("memoryPressure")) return;
  base::YamlMap pressure = root.Map("memoryPressure");
  ReadThresholds(pressure, "container", &limits->container);
  ReadThresholds(pressure, "node", &limits->node);
  double tight = limits->container.tight_some / 100;
  double critical = limits->container.critical_full / 100;
  pressure.Fraction("someStalled", &tight);
  pressure.Fraction("allStalled", &critical);
  for (PressureThresholds* thresholds : {&limits->container, &limits->node}) {
    thresholds->tight_some = tight * 100;
    thresholds->critical_full = critical * 100;
  }
}

uint32_t ReadCount(base::YamlMap& map, std::string_view key, uint64_t least,
                   uint32_t otherwise) {
  uint64_t count = otherwise;
  map.Uint(key, least, UINT32_MAX, &count);
  return static_cast<uint32_t>(count);
}

ClassConfig ReadClass(base::YamlMap& map) {
  ClassConfig of;
  if (!map.String("name", &of.name)) map.Fault("name", "is missing");
  map.Bool("core", &of.core);
  map.Fraction("floor", &of.floor);
  map.Fraction("maxShare", &of.max_share);
  of.weight = ReadCount(map, "weight", 1, 1);
  of.cap = {.max_send_wr = ReadCount(map, "maxSendWr", 1, 0),
            .max_recv_wr = ReadCount(map, "maxRecvWr", 0, 0),
            .max_send_sge = ReadCount(map, "maxSendSge", 1, 0),
            .max_recv_sge = ReadCount(map, "maxRecvSge", 0, 0),
            .max_inline_data = ReadCount(map, "maxInlineData", 0, 0)};
  return of;
}

void ReadClasses(base::YamlMap& root, ClassesConfig* config) {
  config->classes.clear();
  for (base::YamlMap& map : root.Maps("classes"))
    config->classes.push_back(ReadClass(map));
  for (base::YamlMap& map : root.Maps("guarantees")) {
    ClientGuarantee& of = config->guarantees.emplace_back();
    if (!map.String("client", &of.client)) map.Fault("client", "is missing");
    if (!map.Fraction("share", &of.share)) map.Fault("share", "is missing");
  }
  if (const absl::Status status = Complete(*config); !status.ok())
    root.Fault("classes", std::string(status.message()));
}

void ReadLogLevel(base::YamlMap& map, Config& config) {
  std::string text;
  if (!map.String("logLevel", &text)) return;
  if (auto level = base::ParseLogLevel(text); level.ok()) {
    config.log_level = *level;
  } else {
    map.Fault("logLevel", std::string(level.status().message()));
  }
}

// Flags as given; absent ones are nullopt.
struct Flags {
  std::string config;
  std::vector<std::string> devices;
  std::optional<std::string> budget, memory_limit_fraction, log_level;
  std::optional<std::string> socket, shared_volume, metrics_address;
  std::optional<std::string> sysfs_root, dev_root, proc_root, cgroup_root;
};

void ApplyPath(const char* flag, const std::optional<std::string>& value,
               std::string& path, std::vector<std::string>& faults) {
  if (!value.has_value()) return;
  path = *value;
  if (const std::string fault = AbsolutePathFault(path); !fault.empty())
    faults.push_back(fmt::format("{} {}", flag, fault));
}

void ApplyFigures(const Flags& flags, Config& config,
                  std::vector<std::string>& faults) {
  if (flags.budget.has_value()) {
    auto bytes = base::ParseQuantity(*flags.budget);
    if (!bytes.ok()) {
      faults.push_back(
          fmt::format("--budget: {}", std::string(bytes.status().message())));
    } else if (*bytes == 0) {
      faults.push_back(
          "--budget: must be more than 0 bytes, e.g. 64Mi; leave it out so "
          "that the other sources decide");
    } else {
      config.budget_bytes = *bytes;
      config.budget_origin = "--budget";
    }
  }
  if (flags.memory_limit_fraction.has_value()) {
    if (auto fraction = base::ParseFraction(*flags.memory_limit_fraction)) {
      config.memory_limit_fraction = *fraction;
    } else {
      faults.push_back(fmt::format(
          "--memory-limit-fraction: {} is no fraction above 0 and up to 1, "
          "such as 0.5 or 50%",
          base::QuoteForMessage(*flags.memory_limit_fraction)));
    }
  }
  if (flags.log_level.has_value()) {
    if (auto level = base::ParseLogLevel(*flags.log_level); level.ok()) {
      config.log_level = *level;
    } else {
      faults.push_back(fmt::format("--log-level: {}",
                                   std::string(level.status().message())));
    }
  }
}

void ApplyFlags(const Flags& flags, Config& config,
                std::vector<std::string>& faults) {
  if (!flags.devices.empty()) {
    config.devices = flags.devices;
    if (const std::string fault = DevicesFault(flags.devices); !fault.empty())
      faults.push_back("--device: " + fault);
  }
  ApplyFigures(flags, config, faults);
  ApplyPath("--socket", flags.socket, config.socket, faults);
  ApplyPath("--shared-volume", flags.shared_volume, config.shared_volume,
            faults);
  if (flags.metrics_address) config.metrics_address = *flags.metrics_address;
  ApplyPath("--sysfs-root", flags.sysfs_root, config.sysfs_root, faults);
  ApplyPath("--dev-root", flags.dev_root, config.dev_root, faults);
  ApplyPath("--proc-root", flags.proc_root, config.proc_root, faults);
  ApplyPath("--cgroup-root", flags.cgroup_root, config.cgroup_root, faults);
}

void DeclareFlags(CLI::App& app, Flags& flags) {
  app.set_help_flag("-h,--help", "Print this and exit");
  app.set_version_flag("--version", "purser-sidecar " PURSER_VERSION);
  app.add_option("--config", flags.config, "YAML file; flags override it");
  app.add_option("--device", flags.devices,
                 "RDMA device to open, may be repeated (default: all that the "
                 "container was given)")
      ->expected(1)
      ->take_all();
  app.add_option("--budget", flags.budget,
                 "Queue memory that this pod may hold, e.g. 64Mi");
  app.add_option("--memory-limit-fraction", flags.memory_limit_fraction,
                 "Part of the container's memory limit that queues may take "
                 "(default: 0.5)");
  app.add_option("--shared-volume", flags.shared_volume,
                 "Directory shared by the pod's containers (default: "
                 "/run/purser)");
  app.add_option("--socket", flags.socket,
                 "Unix socket to serve on (default: sidecar.sock in the "
                 "shared volume)");
  app.add_option("--metrics-address", flags.metrics_address,
                 "Address of /metrics, /healthz and /readyz (default: :9837)");
  app.add_option("--log-level", flags.log_level,
                 "debug, info, warn or error (default: info)");
  app.add_option("--sysfs-root", flags.sysfs_root, "Default: /sys");
  app.add_option("--dev-root", flags.dev_root, "Default: /dev");
  app.add_option("--proc-root", flags.proc_root, "Default: /proc");
  app.add_option("--cgroup-root", flags.cgroup_root, "Default: /sys/fs/cgroup");
  app.allow_extras();
}

constexpr std::array<std::string_view, 14> kFlagNames = {
    "--config",        "--device",
    "--budget",        "--socket",
    "--shared-volume", "--memory-limit-fraction",
    "--log-level",     "--metrics-address",
    "--sysfs-root",    "--dev-root",
    "--proc-root",     "--cgroup-root",
    "--version",       "--help"};

// What is no flag of ours. The value of a mistyped flag is not a fault of its
// own.
void ReportExtras(const std::vector<std::string>& extras,
                  std::vector<std::string>& faults) {
  bool after_unknown_flag = false;
  for (const std::string& extra : extras) {
    const bool is_flag = extra.starts_with("-");
    if (is_flag) {
      const std::string name = extra.substr(0, extra.find('='));
      faults.push_back(fmt::format("unknown flag {}{}; --help lists all", name,
                                   base::DidYouMean(name, kFlagNames)));
    } else if (!after_unknown_flag) {
      faults.push_back(
          fmt::format("unexpected argument {}", base::QuoteForMessage(extra)));
    }
    after_unknown_flag = is_flag;
  }
}

}  // namespace

std::string Config::SocketPath() const {
  return socket.empty() ? shared_volume + "/sidecar.sock" : socket;
}

absl::StatusOr<Config> ParseConfig(const std::string& name,
                                   std::string_view yaml) {
  Config config;
  base::StrictYaml document(name, yaml);
  base::YamlMap root = document.Root();
  std::string version;
  if (root.String("version", &version) ? version != "v1" : !root.Has("version"))
    root.Fault("version", version.empty()
                              ? "is missing; begin the file with `version: v1`"
                              : fmt::format("{} is not known; this is v1",
                                            base::QuoteForMessage(version)));
  if (root.Strings("devices", &config.devices)) {
    if (const std::string fault = DevicesFault(config.devices); !fault.empty())
      root.Fault("devices", fault);
  }
  ReadBudget(root, name, config);
  root.Fraction("memoryLimitFraction", &config.memory_limit_fraction);
  ReadPath(root, "sharedVolume", &config.shared_volume);
  ReadPath(root, "socket", &config.socket);
  root.String("metricsAddress", &config.metrics_address);
  ReadLogLevel(root, config);
  root.Uint("maxClients", 1, kMaxClients, &config.max_clients);
  ReadPressure(root, &config.limits);
  ReadClasses(root, &config.classes);
  PURSER_RETURN_IF_ERROR(document.Finish());
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  PURSER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  return ParseConfig(path, text);
}

absl::StatusOr<Invocation> ParseCommandLine(int argc, const char* const* argv) {
  Flags flags;
  std::vector<std::string> faults;
  CLI::App app(
      "Owns a pod's RDMA queue-memory budget and creates its queue pairs.",
      "purser-sidecar");
  DeclareFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Invocation{.print = app.help()};
  } catch (const CLI::CallForVersion& version) {
    return Invocation{.print = std::string(version.what()) + "\n"};
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  ReportExtras(app.remaining(), faults);

  Config config;
  if (!flags.config.empty()) {
    absl::StatusOr<Config> loaded = LoadConfig(flags.config);
    if (loaded.ok()) {
      config = *std::move(loaded);
    } else {
      faults.push_back(std::string(loaded.status().message()));
    }
  }
  ApplyFlags(flags, config, faults);
  if (!faults.empty())
    return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
  return Invocation{.config = std::move(config)};
}

}  // namespace purser::sidecar
