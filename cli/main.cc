// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "base/signals.h"
#include "cli/command_line.h"
#include "cli/find_device.h"
#include "cli/machine.h"
#include "cli/run.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  auto invocation = purser::cli::ParseCommandLine(argc, argv, std::cout,
                                                  std::cerr, &exit_code);
  if (!invocation) return exit_code;
  // Other commands end by the signal at once; the sidecar then cleans up.
  if (invocation->HoldsUntilSignal()) purser::base::BlockSignals();
  purser::cli::Environment environment{
      std::cout,
      std::cerr,
      isatty(STDOUT_FILENO) == 1,
      [](std::chrono::milliseconds timeout) {
        return purser::base::WaitForSignal(timeout);
      },
      [](const std::string& name) {
        return purser::cli::FindDevice(purser::rdma::LibibverbsVerbs(), "/sys",
                                       "/dev", name,
                                       purser::cli::KernelRelease());
      },
      [] {
        return purser::cli::ReadMachine("/sys/fs/cgroup", "/proc",
                                        std::getenv("MLX_QP_ALLOC_TYPE"));
      },
      [](const std::string& device) {
        return purser::cli::ReadCounters("/sys", device);
      },
      nullptr,
      [] {
        winsize size = {};
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
          return purser::cli::TerminalSize{};
        return purser::cli::TerminalSize{size.ws_row, size.ws_col};
      }};
  return purser::cli::Run(*invocation, environment);
}
