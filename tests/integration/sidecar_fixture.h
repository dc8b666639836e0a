// SPDX-License-Identifier: Apache-2.0
//
// A sidecar on the verbs fake as a process of its own, in file trees like a
// node's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "purser/v1/sidecar.grpc.pb.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/paths.h"
#include "tests/integration/calm_proc.h"
#include "tests/integration/http_get.h"
#include "tests/integration/process.h"

namespace purser::integration {

using Clock = std::chrono::steady_clock;

// Generous: for loaded machines and sanitizers. What must be fast is measured.
inline constexpr std::chrono::seconds kLong{30};

class SidecarProcessTest : public ::testing::Test {
 protected:
  SidecarProcessTest() {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    tree_.Directory("run");
    WriteCalmProc(tree_);
  }

  // The usual flags, unless `more` has its own, and `more`.
  std::vector<std::string> Arguments(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        fakes::BuiltPath("tests/integration/fake_sidecar")};
    for (const std::string& usual :
         {"--shared-volume=" + tree_.path("run"),
          std::string("--metrics-address=127.0.0.1:0"),
          "--sysfs-root=" + sysfs_.sysfs_root().string(),
          "--dev-root=" + sysfs_.dev_root().string(),
          "--proc-root=" + tree_.path("proc"),
          "--cgroup-root=" + tree_.path("cgroup")}) {
      const std::string flag = usual.substr(0, usual.find('=') + 1);
      if (std::none_of(more.begin(), more.end(), [&](const std::string& own) {
            return own.starts_with(flag);
          }))
        arguments.push_back(usual);
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Process Start(const std::vector<std::string>& more = {"--budget=8Mi"},
                std::vector<std::string> environment = {}) {
    return Process(Arguments(more), std::move(environment));
  }
  Process StartServing() {
    Process sidecar = Start();
    EXPECT_TRUE(sidecar.WaitForOutput("serving", kLong)) << sidecar.output();
    return sidecar;
  }
  // Runs one that must not start.
  struct Ended {
    int code;
    std::string output;
  };
  Ended Fails(const std::vector<std::string>& more,
              std::vector<std::string> environment = {}) {
    Process sidecar = Start(more, std::move(environment));
    const std::optional<int> code = sidecar.Wait(kLong);
    return {code.value_or(-1), sidecar.output()};
  }

  std::string socket() const { return tree_.path("run/sidecar.sock"); }
  std::unique_ptr<v1::Sidecar::Stub> Stub() const {
    return v1::Sidecar::NewStub(grpc::CreateChannel(
        "unix:" + socket(), grpc::InsecureChannelCredentials()));
  }
  grpc::Status GetBudget(v1::GetBudgetResponse& response) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    return Stub()->GetBudget(&context, {}, &response);
  }
  uint64_t UsedBytes() const {
    v1::GetBudgetResponse response;
    const grpc::Status status = GetBudget(response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.used().node_bytes() + response.used().container_bytes();
  }

  bool BecomesUsed(uint64_t bytes) const {
    for (const auto end = Clock::now() + kLong; Clock::now() < end;) {
      if (UsedBytes() == bytes) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  static int MetricsPort(const Process& sidecar) {
    const size_t at = sidecar.output().find("metrics_port=");
    EXPECT_NE(at, std::string::npos) << sidecar.output();
    return std::atoi(sidecar.output().c_str() + at + strlen("metrics_port="));
  }
  // Status line, headers and body.
  static std::string Get(const Process& sidecar, const std::string& path) {
    return HttpGet(MetricsPort(sidecar), path);
  }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
};

}  // namespace purser::integration
