// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/exit_code.h"
#include "cli/run.h"
#include "tests/fakes/fake_fabric.h"
#include "tests/fakes/fake_sidecar_service.h"
#include "tests/fakes/file_tree.h"

namespace purser::cli {

// A stream that another thread watches.
class WatchedStream : private std::streambuf, public std::ostream {
 public:
  WatchedStream() : std::ostream(this) {}
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }
  // Waits until it contains `what`; false after 20 s.
  bool WaitFor(const std::string& what) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return text_.find(what) != std::string::npos;
    });
  }

 private:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    std::lock_guard lock(mutex_);
    text_.append(text, static_cast<size_t>(count));
    changed_.notify_all();
    return count;
  }
  int overflow(int c) override {
    const char character = static_cast<char>(c);
    xsputn(&character, 1);
    return c;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string text_;
};

// One invocation of `purser`, in this process. A signal may come at any time.
struct Purser {
  WatchedStream out, err;
  std::atomic<bool> signalled = false;
  bool terminal = false;
  std::function<absl::StatusOr<planner::Device>(const std::string&)>
      find_device;
  std::function<absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>>()>
      open_netlink;
  std::function<planner::Machine()> read_machine;
  std::function<absl::StatusOr<std::vector<planner::Counter>>(
      const std::string&)>
      read_counters;

  int operator()(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "purser");
    std::vector<const char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(argument.c_str());
    int exit_code = -1;
    auto invocation = ParseCommandLine(static_cast<int>(argv.size()),
                                       argv.data(), out, err, &exit_code);
    if (!invocation) return exit_code;
    Environment environment{out,
                            err,
                            terminal,
                            [this](std::chrono::milliseconds timeout) {
                              return AwaitSignal(timeout);
                            },
                            find_device,
                            read_machine,
                            read_counters,
                            open_netlink};
    return Run(*invocation, environment);
  }

 private:
  std::optional<int> AwaitSignal(std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    do {
      if (signalled) return SIGTERM;
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return std::nullopt;
  }
};

class CliTest : public testing::Test {
 protected:
  // Arguments for the fake sidecar.
  std::vector<std::string> At(const fakes::FakeSidecarService& sidecar,
                              std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--socket", sidecar.socket_path()});
    return arguments;
  }
  std::vector<std::string> Here(std::vector<std::string> arguments) const {
    return At(sidecar_, std::move(arguments));
  }

  fakes::FileTree volume_;
  fakes::FakeFabric fabric_;
  fakes::FakeSidecarService sidecar_{volume_.root().string(), fabric_};
};

}  // namespace purser::cli
