// SPDX-License-Identifier: Apache-2.0
//
// A real purser-sidecar as a child process, in a shared volume of its own.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "tests/fakes/paths.h"

namespace purser::rxe {

// Looks again every few milliseconds: other processes and the kernel give no
// event for what the tests wait for.
inline bool Eventually(std::chrono::milliseconds within,
                       const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& arguments) {
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<char*> argv;
      for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~ChildProcess() { Kill(SIGKILL); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Sends the signal and waits for the end; its wait status.
  int Kill(int signal) {
    if (pid_ <= 0) return 0;
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
};

class SidecarProcess {
 public:
  // `run_by`: a command that runs it, with its arguments.
  explicit SidecarProcess(std::string volume, std::string budget,
                          const std::string& metrics_port = "0",
                          const std::vector<std::string>& run_by = {})
      : volume_(std::move(volume)),
        process_(Join(run_by, {fakes::BuiltPath("sidecar/purser-sidecar"),
                               "--device=rxe0", "--shared-volume=" + volume_,
                               "--budget=" + budget,
                               "--metrics-address=127.0.0.1:" + metrics_port,
                               "--log-level=warn"})) {}

  std::string socket() const { return volume_ + "/sidecar.sock"; }
  const std::string& volume() const { return volume_; }
  ChildProcess& process() { return process_; }
  pid_t pid() const { return process_.pid(); }

  absl::StatusOr<std::unique_ptr<client::Client>> Connect(
      const std::string& name) const {
    absl::StatusOr<std::unique_ptr<client::Client>> client =
        absl::UnavailableError("not tried");
    Eventually(std::chrono::seconds(20), [&] {
      client = client::Client::Connect(socket(), name);
      return client.ok() || !absl::IsUnavailable(client.status());
    });
    return client;
  }

 private:
  static std::vector<std::string> Join(std::vector<std::string> first,
                                       const std::vector<std::string>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  std::string volume_;
  ChildProcess process_;
};

}  // namespace purser::rxe
