// SPDX-License-Identifier: Apache-2.0
//
// The sidecar as a process: how it starts, why it does not, how it ends, and
// what is left when it or a client is killed.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/integration/sidecar_fixture.h"

namespace purser::integration {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
TEST_F(SidecarProcessTest, ServesUntilSigtermAndLeavesNothing) {
  Process sidecar = StartServing();
  struct stat status;
  ASSERT_EQ(stat(socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666u) << "for the other containers";

  Process client(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "5"});
  ASSERT_TRUE(client.WaitForOutput("holding 5", kLong)) << client.output();
  EXPECT_GT(UsedBytes(), 0u);
  sidecar.Signal(SIGHUP);
  EXPECT_TRUE(sidecar.WaitForOutput("nothing to reload", kLong));
  EXPECT_GT(UsedBytes(), 0u);

  const auto begin = Clock::now();
  sidecar.Signal(SIGTERM);
  EXPECT_EQ(sidecar.Wait(kLong), 0) << sidecar.output();
  EXPECT_LT(Clock::now() - begin, 2s);
  EXPECT_FALSE(std::filesystem::exists(socket()));
  EXPECT_EQ(client.Wait(kLong), 3) << "its stream ended";
}

TEST_F(SidecarProcessTest, SigtermEndsItInTimeThoughTheDeviceIsSlow) {
  Process sidecar = Start({"--budget=8Mi"}, {"FAKE_SLOW_CALL=destroy_qp"});
  ASSERT_TRUE(sidecar.WaitForOutput("serving", kLong)) << sidecar.output();
  Process client(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "20"});
  ASSERT_TRUE(client.WaitForOutput("holding 20", kLong)) << client.output();
  const auto begin = Clock::now();
  sidecar.Signal(SIGTERM);
  EXPECT_EQ(sidecar.Wait(kLong), 0) << sidecar.output();
  EXPECT_LT(Clock::now() - begin, 2s) << "20 x 500 ms of destruction";
  EXPECT_THAT(sidecar.output(),
              HasSubstr("the kernel does it at the process's end"));
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(SidecarProcessTest, ADeviceThatGoesAndComesBackCostsNoRestart) {
  Process sidecar = StartServing();
  Process client(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "5"});
  ASSERT_TRUE(client.WaitForOutput("holding 5", kLong)) << client.output();
  EXPECT_THAT(Get(sidecar, "/readyz"), HasSubstr(" 200 "));

  const auto begin = Clock::now();
  sysfs_.RemoveDevice("rxe0");
  EXPECT_TRUE(sidecar.WaitForOutput("RDMA device lost", kLong));
  EXPECT_LT(Clock::now() - begin, 2s);
  EXPECT_THAT(sidecar.output(), HasSubstr("queue_pairs=5"));
  EXPECT_EQ(UsedBytes(), 0u);
  EXPECT_THAT(
      Get(sidecar, "/readyz"),
      AllOf(HasSubstr(" 503 "), HasSubstr("device rxe0 was removed; it is "
                                          "opened again when it is back")));
  EXPECT_THAT(Get(sidecar, "/metrics"),
              HasSubstr("purser_device_open{device=\"rxe0\"} 0"));
  EXPECT_THAT(Get(sidecar, "/healthz"), HasSubstr(" 200 "));

  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  EXPECT_TRUE(sidecar.WaitForOutput("open again", kLong));
  EXPECT_THAT(Get(sidecar, "/readyz"), HasSubstr(" 200 "));
  Process again(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "5"});
  EXPECT_TRUE(again.WaitForOutput("holding 5", kLong)) << again.output();
  sidecar.Signal(SIGTERM);
  EXPECT_EQ(sidecar.Wait(kLong), 0) << sidecar.output();
}

TEST_F(SidecarProcessTest, AKilledSidecarIsUnavailableAndThenReplaced) {
  Process sidecar = StartServing();
  Process client(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "3"});
  ASSERT_TRUE(client.WaitForOutput("holding 3", kLong)) << client.output();

  sidecar.Signal(SIGKILL);
  EXPECT_EQ(sidecar.Wait(kLong), 128 + SIGKILL);
  EXPECT_EQ(client.Wait(kLong), 3) << "told by the end of its stream";
  EXPECT_TRUE(std::filesystem::exists(socket())) << "stale";
  v1::GetBudgetResponse response;
  EXPECT_EQ(GetBudget(response).error_code(), grpc::StatusCode::UNAVAILABLE);

  Process next = StartServing();
  EXPECT_EQ(UsedBytes(), 0u);
  Process again(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "3"});
  EXPECT_TRUE(again.WaitForOutput("holding 3", kLong)) << again.output();
}

TEST_F(SidecarProcessTest, AKilledClientsBytesAreBackWithinTwoSeconds) {
  Process sidecar = StartServing();
  Process stays(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "2"});
  ASSERT_TRUE(stays.WaitForOutput("holding 2", kLong)) << stays.output();
  const uint64_t before = UsedBytes();
  Process dies(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "20"});
  ASSERT_TRUE(dies.WaitForOutput("holding 20", kLong)) << dies.output();
  EXPECT_EQ(UsedBytes(), 11 * before);

  const auto begin = Clock::now();
  dies.Signal(SIGKILL);
  EXPECT_EQ(dies.Wait(kLong), 128 + SIGKILL);
  while (UsedBytes() != before && Clock::now() - begin < kLong) continue;
  EXPECT_LT(Clock::now() - begin, 2s);
  EXPECT_EQ(UsedBytes(), before);
}

TEST_F(SidecarProcessTest, ASecondOneOnTheSocketDoesNotStart) {
  Process sidecar = StartServing();
  const Ended second = Fails({"--budget=8Mi"});
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.output, HasSubstr(socket()));
  EXPECT_EQ(UsedBytes(), 0u) << "the first goes on serving";
}

// An application with queue pairs of its own, in the ledger file.
TEST_F(SidecarProcessTest, LeasesOfApplicationsCountAndOutliveTheSidecar) {
  Process sidecar = StartServing();
  Process application({fakes::BuiltPath("tests/integration/ledger_worker"),
                       tree_.path("run/ledger"), "reserve", "1000000", "hold"});
  ASSERT_TRUE(application.WaitForOutput("holding", kLong))
      << application.output();
  EXPECT_TRUE(BecomesUsed(2'000'000));
  Process other({fakes::BuiltPath("tests/integration/ledger_worker"),
                 tree_.path("run/ledger"), "reserve", "4000000"});
  EXPECT_EQ(other.Wait(kLong), 3) << "8 MB of the 8 MiB would be over";

  sidecar.Signal(SIGKILL);
  sidecar.Wait(kLong);
  Process next = StartServing();
  EXPECT_TRUE(BecomesUsed(2'000'000));
  EXPECT_THAT(Get(next, "/metrics"),
              AllOf(HasSubstr("purser_ledger_lease_bytes{charged_to=\"node\"} "
                              "1000000\n"),
                    HasSubstr("purser_ledger_slots_taken 1\n"),
                    HasSubstr("purser_ledger_sound 1\n")));
  application.Signal(SIGKILL);
  EXPECT_TRUE(BecomesUsed(0));
}

// Over the ledger file, by random words and truncations.
TEST_F(SidecarProcessTest, WhatIsScribbledCostsNeitherTheSidecarNorItsClients) {
  Process sidecar = StartServing();
  Process client(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "5"});
  ASSERT_TRUE(client.WaitForOutput("holding 5", kLong)) << client.output();
  const uint64_t used = UsedBytes();
  const base::FileDescriptor file(
      open(tree_.path("run/ledger").c_str(), O_RDWR));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t word = random();
    const off_t offset = static_cast<off_t>(random() % 36864);
    ASSERT_GE(pwrite(file.get(), &word, sizeof(word), offset), 0);
    if (i % 1000 == 0) {
      ASSERT_EQ(ftruncate(file.get(), offset), 0);
      ASSERT_GE(UsedBytes(), used);
    }
  }
  EXPECT_TRUE(BecomesUsed(used));
  EXPECT_THAT(Get(sidecar, "/metrics"),
              HasSubstr("purser_ledger_slots_unknown 0\n"));
  client.Signal(SIGKILL);
  EXPECT_TRUE(BecomesUsed(0));
  Process next(
      {fakes::BuiltPath("tests/integration/sidecar_client"), socket(), "5"});
  EXPECT_TRUE(next.WaitForOutput("holding 5", kLong)) << next.output();
  sidecar.Signal(SIGTERM);
  EXPECT_EQ(sidecar.Wait(kLong), 0) << sidecar.output();
}

TEST_F(SidecarProcessTest, BadConfigurationIsCode2WithAllFaults) {
  const Ended ended = Fails({"--budgt=8Mi", "--log-level=loud"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("--budgt"), HasSubstr("loud"),
                                  HasSubstr("did you mean \"--budget\"?")));
  const Ended garbled = Fails({}, {"PURSER_QUEUE_MEMORY_BYTES=lots"});
  EXPECT_EQ(garbled.code, 2);
  EXPECT_THAT(garbled.output, HasSubstr("PURSER_QUEUE_MEMORY_BYTES"));
  const Ended above =
      Fails({"--budget=128Mi"}, {"PURSER_QUEUE_MEMORY_BYTES=67108864"});
  EXPECT_EQ(above.code, 2);
  EXPECT_THAT(above.output, HasSubstr("64 units of rdma/wqe-mib"));
  const Ended path =
      Fails({"--budget=8Mi", "--socket=/" + std::string(107, 'x')});
  EXPECT_EQ(path.code, 2);
  EXPECT_THAT(path.output, HasSubstr("107"));
  const Ended address = Fails({"--budget=8Mi", "--metrics-address=nowhere"});
  EXPECT_EQ(address.code, 2);
  EXPECT_THAT(address.output, HasSubstr("nowhere"));
}

TEST_F(SidecarProcessTest, WhatIsMissingIsCode1AndNamed) {
  const Ended no_budget = Fails({});
  EXPECT_EQ(no_budget.code, 1);
  EXPECT_THAT(no_budget.output,
              AllOf(HasSubstr("no queue-memory budget"),
                    HasSubstr("rdma/wqe-mib"), HasSubstr("--budget")));
  const Ended no_volume =
      Fails({"--budget=8Mi", "--shared-volume=" + tree_.path("nowhere")});
  EXPECT_EQ(no_volume.code, 1);
  EXPECT_THAT(no_volume.output, HasSubstr(tree_.path("nowhere")));
  tree_.Directory("other/ledger");
  const Ended no_ledger =
      Fails({"--budget=8Mi", "--shared-volume=" + tree_.path("other")});
  EXPECT_EQ(no_ledger.code, 1);
  EXPECT_THAT(no_ledger.output, AllOf(HasSubstr(tree_.path("other/ledger")),
                                      HasSubstr("no regular file")));
  const Ended other_device = Fails({"--budget=8Mi", "--device=mlx5_7"});
  EXPECT_EQ(other_device.code, 1);
  EXPECT_THAT(other_device.output,
              AllOf(HasSubstr("mlx5_7"), HasSubstr("rxe0")));
  tree_.Remove("dev/infiniband");
  const Ended no_node = Fails({"--budget=8Mi"});
  EXPECT_EQ(no_node.code, 1);
  EXPECT_THAT(no_node.output, HasSubstr("request rdma/<pool>"));
  EXPECT_FALSE(std::filesystem::exists(socket())) << "nothing is left behind";
}

TEST_F(SidecarProcessTest, AFailedStartLeavesNoSocketAndNoObjects) {
  Process sidecar = StartServing();
  const std::string port = std::to_string(MetricsPort(sidecar));
  tree_.Directory("other");
  const std::string other = tree_.path("other/sidecar.sock");
  const Ended taken =
      Fails({"--budget=8Mi", "--shared-volume=" + tree_.path("other"),
             "--metrics-address=127.0.0.1:" + port});
  EXPECT_EQ(taken.code, 1) << taken.output;
  EXPECT_THAT(taken.output, HasSubstr(port));
  EXPECT_FALSE(std::filesystem::exists(other));
}

// KiB of a line of /proc/PID/status: "RssAnon:	    1760 kB".
long StatusKib(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":"))
      return std::stol(line.substr(name.size() + 1));
  return -1;
}

// Clock ticks (10 ms) that all threads have used.
long CpuTicks(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  std::istringstream after_name(text.substr(text.rfind(')') + 2));
  std::vector<std::string> fields;
  for (std::string field; after_name >> field;) fields.push_back(field);
  return std::stol(fields.at(11)) + std::stol(fields.at(12));
}

TEST_F(SidecarProcessTest, FollowsAMemoryLimitAndTheNodesMemory) {
  tree_.Write("cgroup/memory.max", "16777216\n");
  Process sidecar = StartServing();
  EXPECT_TRUE(
      sidecar.WaitForOutput("bytes=8388608 size=\"8 MiB\" "
                            "counts=\"container-charged bytes\"",
                            kLong));
  tree_.Write("cgroup/memory.max", "33554432\n");
  EXPECT_TRUE(
      sidecar.WaitForOutput("msg=\"budget changed\" source=cgroup "
                            "bytes=16777216",
                            kLong))
      << sidecar.output();
  tree_.Write("proc/meminfo",
              "MemTotal: 8000000 kB\nMemAvailable: 300000 kB\n");
  EXPECT_TRUE(sidecar.WaitForOutput(
      "msg=\"memory pressure\" scope=node state=critical", kLong))
      << sidecar.output();
}

TEST_F(SidecarProcessTest, IdleFootprint) {
  Process sidecar = StartServing();
  const long begin = CpuTicks(sidecar.pid());
  EXPECT_FALSE(sidecar.WaitForOutput("never said", 3s));
  const long ticks = CpuTicks(sidecar.pid()) - begin;
  const long rss = StatusKib(sidecar.pid(), "VmRSS");
  const long anonymous = StatusKib(sidecar.pid(), "RssAnon");
  std::printf(
      "idle: RSS %ld KiB, anonymous %ld KiB, %ld threads, %ld ms of "
      "processor in 3 s\n",
      rss, anonymous, StatusKib(sidecar.pid(), "Threads"), 10 * ticks);
  EXPECT_LE(rss, 24 * 1024);
  EXPECT_LE(anonymous, 5 * 1024);
  EXPECT_LE(ticks, 2);
}

}  // namespace
}  // namespace purser::integration
