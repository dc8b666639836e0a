// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "plugin/config/config.h"

namespace purser::plugin {

// The command line. What is given there wins over the file.
struct Flags {
  std::string config;        // path; "": defaults
  std::string check_config;  // path
  ParseOptions parse;
  std::optional<std::string> kubelet_root_dir, registration, installation,
      sysfs_root, dev_root, metrics_address, log_level;
  bool events = true, open_devices = false, health_check = true;
  NodeViewConfig node_view;
};

// Either flags, or, for --help, --version and mistakes, the exit code of a
// process that has said all there is to say.
struct ParsedFlags {
  std::optional<int> exit_code;
  Flags flags;
};
ParsedFlags ParseFlags(int argc, char** argv, const std::string& version);

// The configuration with the flags over it.
absl::StatusOr<Config> ApplyFlags(const Flags& flags, Config config);
// The file's configuration, or the defaults, with the flags over it.
absl::StatusOr<Config> ConfigFromFlags(const Flags& flags);

}  // namespace purser::plugin
