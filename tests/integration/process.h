// SPDX-License-Identifier: Apache-2.0
//
// A program that a test runs, in a process of its own: its output, its exit
// code, signals to it. Killed and reaped at the end. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"

namespace purser::integration {

class Process {
 public:
  // Starts `arguments[0]`, a path, with this process's environment, without
  // any PURSER_..., and `environment` ("NAME=value"). Standard output and error
  // come together.
  explicit Process(std::vector<std::string> arguments,
                   std::vector<std::string> environment = {});
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number);
  // The exit code, or 128 + the signal that ended it; nullopt: still running.
  std::optional<int> Wait(std::chrono::milliseconds timeout);
  // Whether `text` is in the output, read as it comes.
  bool WaitForOutput(std::string_view text, std::chrono::milliseconds timeout);
  // All that was read; after Wait() everything.
  const std::string& output() const { return output_; }

 private:
  // False: nothing more will come.
  bool Read(std::chrono::milliseconds timeout);

  pid_t pid_ = -1;
  std::optional<int> exit_code_;
  base::FileDescriptor pipe_, pidfd_;
  std::string output_;
};

}  // namespace purser::integration
