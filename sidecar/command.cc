// SPDX-License-Identifier: Apache-2.0
#include "sidecar/command.h"

#include <malloc.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/logging.h"
#include "base/signals.h"
#include "sidecar/app.h"
#include "sidecar/config.h"

namespace purser::sidecar {
namespace {

constexpr int kFailure = 1;
constexpr int kBadConfig = 2;
constexpr std::chrono::milliseconds kStopDeadline{1000};

Environment ReadEnvironment() {
  Environment environment;
  if (const char* bytes = std::getenv("PURSER_QUEUE_MEMORY_BYTES"))
    environment.queue_memory_bytes = bytes;
  if (const char* count = std::getenv("PURSER_QUEUE_PAIRS"))
    environment.queue_pairs = count;
  return environment;
}

// Ends the process unless it is destroyed in time: a device may not answer, or
// have very many queue pairs to destroy. The kernel then destroys what is left.
std::jthread ExitAfter(std::chrono::milliseconds deadline) {
  return std::jthread([deadline](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, deadline, [] { return false; });
    if (stop.stop_requested()) return;
    base::LogWarn(
        "the device's objects are not all destroyed in time: the "
        "kernel does it at the process's end",
        {{"after_ms", deadline.count()}});
    std::_Exit(0);
  });
}

}  // namespace

int RunCommand(int argc, const char* const* argv, rdma::Verbs& verbs) {
  absl::StatusOr<Invocation> invocation = ParseCommandLine(argc, argv);
  if (!invocation.ok()) {
    fmt::print(stderr, "purser-sidecar: the configuration is not valid\n{}\n",
               std::string(invocation.status().message()));
    return kBadConfig;
  }
  if (!invocation->print.empty()) {
    fmt::print("{}", invocation->print);
    return 0;
  }
  // gRPC has up to 16 threads here on a large node, which allocate little: an
  // arena for each is anonymous memory that every pod pays.
  mallopt(M_ARENA_MAX, 2);
  base::InitLogging(invocation->config.log_level);
  base::BlockSignals();

  absl::StatusOr<std::unique_ptr<App>> app =
      App::Create(std::move(invocation->config), ReadEnvironment(), verbs);
  if (!app.ok()) {
    base::LogError("the sidecar does not start", {{"error", app.status()}});
    return absl::IsInvalidArgument(app.status()) ? kBadConfig : kFailure;
  }
  (*app)->Run();
  {
    const std::jthread deadline = ExitAfter(kStopDeadline);
    (*app)->Stop();
  }
  base::LogInfo("stopped");
  return 0;
}

}  // namespace purser::sidecar
