// SPDX-License-Identifier: Apache-2.0
//
// Lets another process ask a running fake kubelet to admit a container: a unix
// socket in the kubelet's root directory, one request a connection.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/fakes/kubelet.h"

namespace purser::fakes {

using Requests = std::vector<std::pair<std::string, int>>;  // resource, units

// "rdma/hca=1,rdma/wqe-mib=64".
absl::StatusOr<Requests> ParseRequests(const std::string& text);

// What a script needs of an allocation, one a line: the environment as
// KEY=VALUE, then ALLOCATED_UNITS, ALLOCATED_DEVICES and ALLOCATED_MOUNTS. Fit
// to be sourced by a shell.
std::string AllocationLines(const ContainerAllocation& allocation);

// Waits until each resource has a unit to give, then admits `container`.
struct AdmitOptions {
  std::string container;
  std::vector<std::string> wait_for;
  Requests requests;
  std::chrono::milliseconds timeout{10'000};
};
absl::StatusOr<std::string> Admit(Kubelet& kubelet,
                                  const AdmitOptions& options);

// Serves Admit() to other processes, on one thread. Owned by main().
class KubeletControl {
 public:
  KubeletControl(Kubelet& kubelet, const std::filesystem::path& root_dir);
  ~KubeletControl();

 private:
  void Run();
  std::string Answer(const std::string& request);
  Kubelet& kubelet_;
  const std::string path_;
  int listener_ = -1;
  std::thread thread_;
};

// Waits for a fake kubelet on that directory as long as for the rest. NotFound:
// none came.
absl::StatusOr<std::string> AskForAdmission(
    const std::filesystem::path& root_dir, const AdmitOptions& options);

}  // namespace purser::fakes
