// SPDX-License-Identifier: Apache-2.0
//
// What the sidecar is told: defaults, then the config file, then flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/logging.h"
#include "sidecar/classes.h"
#include "sidecar/limits_watch.h"

namespace purser::sidecar {

struct Config {
  std::vector<std::string> devices;      // empty: all that are visible
  std::optional<uint64_t> budget_bytes;  // explicit bound on the queue memory
  std::string budget_origin;             // "--budget", "budget in FILE"
  double memory_limit_fraction = 0.5;    // of the container's memory limit
  std::string shared_volume = "/run/purser";
  std::string socket;  // empty: shared_volume/sidecar.sock
  std::string metrics_address = ":9837";
  base::LogLevel log_level = base::LogLevel::kInfo;
  uint64_t max_clients = 256;   // attached at one time
  LimitsWatch::Options limits;  // thresholds of memory pressure
  ClassesConfig classes = {.classes = {{.name = kDefaultClass}}};

  // Where the system is read, for unusual mounts.
  std::string sysfs_root = "/sys";
  std::string dev_root = "/dev";
  std::string proc_root = "/proc";
  std::string cgroup_root = "/sys/fs/cgroup";

  std::string SocketPath() const;
};

// A whole config file. InvalidArgument with all faults, one a line. `name` is
// what messages call it.
absl::StatusOr<Config> ParseConfig(const std::string& name,
                                   std::string_view yaml);
absl::StatusOr<Config> LoadConfig(const std::string& path);

struct Invocation {
  Config config;
  std::string print;  // not empty (--help, --version): print it and exit 0
};

// Flags over the file that --config names. InvalidArgument with all faults of
// both, one a line.
absl::StatusOr<Invocation> ParseCommandLine(int argc, const char* const* argv);

}  // namespace purser::sidecar
