// SPDX-License-Identifier: Apache-2.0
//
// A kubelet for demonstrations and scripts. `fake_kubelet --root DIR` runs
// until SIGTERM and prints what every resource has as it changes; SIGHUP
// restarts it. With --wait or --allocate it instead asks the one that runs on
// DIR and prints what the container was given.
#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>

#include "base/signals.h"
#include "spdlog/fmt/fmt.h"
#include "tests/fakes/kubelet.h"
#include "tests/fakes/kubelet_control.h"

namespace {

using purser::fakes::Kubelet;
using purser::fakes::KubeletEvent;

struct Flags {
  std::string root, container = "container", env_file;
  std::vector<std::string> wait_for;
  std::string requests;
  double timeout_seconds = 10;
};

int Fail(const absl::Status& status) {
  fmt::print(stderr, "fake_kubelet: {}\n", status.ToString());
  return 1;
}

// Prints resources' figures when they are news.
class Printer {
 public:
  void operator()(const KubeletEvent& event) {
    std::pair<size_t, size_t>& shown = shown_[event.resource];
    const std::pair<size_t, size_t> now{event.capacity, event.allocatable};
    if (event.what == "registered" || shown == now) return;
    shown = now;
    fmt::print("{:8.3f} s  {:<16} capacity {:>7}  allocatable {:>7}\n",
               std::chrono::duration<double>(event.at - start_).count(),
               event.resource, event.capacity, event.allocatable);
    std::fflush(stdout);
  }

 private:
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  std::map<std::string, std::pair<size_t, size_t>> shown_;
};

int Serve(const std::filesystem::path& root) {
  Kubelet kubelet(root, [printer = std::make_shared<Printer>()](
                            const KubeletEvent& event) { (*printer)(event); });
  if (absl::Status status = kubelet.Start(); !status.ok()) return Fail(status);
  purser::fakes::KubeletControl control(kubelet, root);
  while (purser::base::WaitForSignal() == SIGHUP) {
    fmt::print("the kubelet restarts\n");
    if (absl::Status status = kubelet.Restart(); !status.ok())
      return Fail(status);
  }
  return 0;
}

int Admit(const Flags& flags) {
  absl::StatusOr<purser::fakes::Requests> requests =
      purser::fakes::ParseRequests(flags.requests);
  if (!requests.ok()) return Fail(requests.status());
  purser::fakes::AdmitOptions options{
      .container = flags.container,
      .wait_for = flags.wait_for,
      .requests = *requests,
      .timeout = std::chrono::milliseconds(
          static_cast<int64_t>(flags.timeout_seconds * 1000))};
  const absl::StatusOr<std::string> lines =
      purser::fakes::AskForAdmission(flags.root, options);
  if (!lines.ok()) return Fail(lines.status());
  if (flags.env_file.empty()) {
    fmt::print("{}", *lines);
    return 0;
  }
  std::ofstream out(flags.env_file);
  out << *lines;
  return out.flush() ? 0 : Fail(absl::UnknownError(flags.env_file));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "A fake kubelet: real gRPC on real unix sockets, in a directory");
  app.add_option("--root", flags.root, "The kubelet's --root-dir")->required();
  app.add_option("--wait", flags.wait_for, "Wait for these resources")
      ->delimiter(',');
  app.add_option("--allocate", flags.requests,
                 "Admit a container: RESOURCE=UNITS,…");
  app.add_option("--container", flags.container,
                 "Its name; it holds its units while the kubelet runs");
  app.add_option("--env-file", flags.env_file,
                 "Write KEY='VALUE' lines there, not to stdout");
  app.add_option("--timeout", flags.timeout_seconds,
                 "Of --wait and --allocate, in seconds");
  CLI11_PARSE(app, argc, argv);
  purser::base::BlockSignals();
  return flags.wait_for.empty() && flags.requests.empty() ? Serve(flags.root)
                                                          : Admit(flags);
}
