// SPDX-License-Identifier: Apache-2.0
//
// Runs what the command line asks for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command_line.h"
#include "planner/device.h"
#include "planner/machine_checks.h"
#include "planner/triage.h"
#include "rdma/resource_netlink.h"

namespace purser::cli {

struct TerminalSize {
  size_t rows = 24, columns = 80;
};

// The world of a command. `out` gets results, `err` what went wrong.
struct Environment {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal;
  // The signal that ends a command that holds; nullopt after `timeout`.
  std::function<std::optional<int>(std::chrono::milliseconds timeout)>
      wait_for_signal;
  // An RDMA device of this machine, by name; "": the only one.
  std::function<absl::StatusOr<planner::Device>(const std::string& name)>
      find_device;
  // This machine and container, as they are now.
  std::function<planner::Machine()> read_machine;
  // What the driver of a device of this machine counts.
  std::function<absl::StatusOr<std::vector<planner::Counter>>(
      const std::string& device)>
      read_counters;
  // RDMA netlink; empty: the kernel's.
  std::function<absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>>()>
      open_netlink;
  // Of the terminal that `out` is; empty: the usual one's.
  std::function<TerminalSize()> terminal_size;
};

// Returns the exit code.
int Run(const Invocation& invocation, Environment& environment);

}  // namespace purser::cli
