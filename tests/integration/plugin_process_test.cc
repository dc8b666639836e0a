// SPDX-License-Identifier: Apache-2.0
//
// The plugin as a process against the fake kubelet: its life beside the
// kubelet's, its exit codes and its size. Figures go to stdout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "spdlog/fmt/fmt.h"
#include "tests/fakes/kubelet.h"
#include "tests/fakes/paths.h"
#include "tests/integration/process.h"
#include "tests/unit/plugin/http_get.h"
#include "tests/unit/plugin/rdma_node.h"

namespace purser::plugin {
namespace {

using integration::Process;

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHca = "rdma/hca";
constexpr const char* kMemory = "rdma/wqe-mib";
// The promise is 1 s; a machine that builds beside the tests needs more.
constexpr auto kGenerous = 10s;

double Milliseconds(steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// A field of /proc/PID/status; memory is in KiB.
std::string Status(const Process& process, const std::string& field) {
  std::ifstream status(fmt::format("/proc/{}/status", process.pid()));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":\t", 0) == 0) return line.substr(field.size() + 2);
  }
  return "";
}

size_t OpenFiles(const Process& process) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(
           fmt::format("/proc/{}/fd", process.pid())))
    ++count;
  return count;
}

class PluginProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { node_.AddRxe("rxe0"); }

  std::unique_ptr<Process> Run(std::vector<std::string> arguments = {},
                               std::vector<std::string> before = {}) {
    std::vector<std::string> command = std::move(before);
    command.insert(command.end(),
                   {fakes::BuiltPath("plugin/purser-device-plugin"),
                    "--sysfs-root", node_.sysfs_root(), "--dev-root",
                    node_.dev_root(), "--kubelet-root-dir",
                    node_.kubelet_root(), "--metrics-address", "127.0.0.1:0"});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunBare(std::move(command));
  }
  std::unique_ptr<Process> RunBare(std::vector<std::string> command) {
    return std::make_unique<Process>(std::move(command));
  }
  std::string WriteConfig(const std::string& text) {
    node_.tree().Write("config.yaml", text);
    return node_.tree().path("config.yaml");
  }
  // Both resources are there, with the plugin's default counts.
  bool Advertised() {
    return kubelet_.WaitForAllocatable(kHca, kGenerous) &&
           kubelet_.WaitForAllocatable(kMemory, kGenerous);
  }
  bool Registered(const char* resource, int times) {
    return kubelet_.WaitFor(
        resource,
        [&](const auto& r) {
          return r.registrations >= times && r.connected && !r.healthy.empty();
        },
        kGenerous);
  }
  // The one that the kubelet knows.
  std::filesystem::path Socket(const char* resource) {
    return kubelet_.device_plugins_dir() /
           kubelet_.resource(resource)->endpoint;
  }

  RdmaNode node_;
  fakes::Kubelet kubelet_{node_.kubelet_root()};
};

TEST_F(PluginProcessTest, TheKubeletSeesTheCapacityAtOnce) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto begin = steady_clock::now();
  const auto plugin = Run();
  ASSERT_TRUE(Advertised()) << plugin->output();
  fmt::print("capacity seen {:.1f} ms after the plugin's start\n",
             Milliseconds(steady_clock::now() - begin));
  EXPECT_EQ(kubelet_.resource(kHca)->healthy.size(), 1000u);
}

TEST_F(PluginProcessTest, TwoHundredKubeletRestartsUnderAllocates) {
  constexpr int kRestarts = 200, kSettled = 20;
  ASSERT_TRUE(kubelet_.Start().ok());
  // Not a line for each of the Allocates: nobody reads them meanwhile.
  const auto plugin = Run({"--log-level", "warn"});
  ASSERT_TRUE(Advertised()) << plugin->output();
  const std::set<std::string> ids = kubelet_.resource(kHca)->healthy;
  ASSERT_TRUE(kubelet_.Allocate("pod", {{kHca, 3}, {kMemory, 64}}).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> allocated = 0;
  std::vector<std::thread> allocating;
  for (const char* container : {"one", "other"}) {
    allocating.emplace_back([&, container] {
      for (; !stop; std::this_thread::yield()) {
        if (!kubelet_.Allocate(container, {{kHca, 1}, {kMemory, 2}}).ok())
          continue;
        ++allocated;
        kubelet_.Free(container);
      }
    });
  }
  std::vector<double> milliseconds;
  size_t files = 0;
  int threads = 0;
  for (int restart = 1; restart <= kRestarts; ++restart) {
    const auto begin = steady_clock::now();
    if (!kubelet_.Restart().ok() || !Registered(kHca, 1 + restart) ||
        !Registered(kMemory, 1 + restart)) {
      ADD_FAILURE() << "restart " << restart << "\n" << plugin->output();
      break;
    }
    milliseconds.push_back(Milliseconds(steady_clock::now() - begin));
    EXPECT_EQ(kubelet_.resource(kHca)->healthy, ids);
    EXPECT_TRUE(kubelet_.Readmit("pod").ok());
    if (restart != kSettled) continue;
    files = OpenFiles(*plugin);
    threads = std::stoi(Status(*plugin, "Threads"));
  }
  stop = true;
  for (std::thread& thread : allocating) thread.join();
  std::sort(milliseconds.begin(), milliseconds.end());
  ASSERT_EQ(milliseconds.size(), size_t{kRestarts});
  fmt::print(
      "{} kubelet restarts under {} Allocates: capacity back after {:.1f} ms "
      "(median), {:.1f} ms (longest)\n",
      kRestarts, allocated.load(), milliseconds[kRestarts / 2],
      milliseconds.back());
  fmt::print("open files {} -> {}, threads {} -> {}\n", files,
             OpenFiles(*plugin), threads, Status(*plugin, "Threads"));
  // Connections of the last restart may still be closing.
  EXPECT_LE(OpenFiles(*plugin), files + 4);
  EXPECT_LE(std::stoi(Status(*plugin, "Threads")), threads + 4);
  for (const char* resource : {kHca, kMemory}) {
    EXPECT_EQ(kubelet_.resource(resource)->registrations, 1 + kRestarts);
    EXPECT_EQ(kubelet_.resource(resource)->repeated_ids, 0);
    EXPECT_EQ(kubelet_.resource(resource)->plugins, 1);
  }
}

TEST_F(PluginProcessTest, AllocationsSurviveThePluginsReplacement) {
  ASSERT_TRUE(kubelet_.Start().ok());
  auto plugin = Run();
  ASSERT_TRUE(Advertised()) << plugin->output();
  const std::set<std::string> hca = kubelet_.resource(kHca)->healthy;
  const std::set<std::string> memory = kubelet_.resource(kMemory)->healthy;
  ASSERT_TRUE(kubelet_.Allocate("pod", {{kHca, 3}, {kMemory, 64}}).ok());
  plugin->Signal(SIGTERM);
  EXPECT_EQ(plugin->Wait(kGenerous), 0);
  ASSERT_TRUE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return !r.connected; }, kGenerous));
  EXPECT_FALSE(kubelet_.Readmit("pod").ok());
  plugin = Run();
  ASSERT_TRUE(Advertised()) << plugin->output();
  EXPECT_EQ(kubelet_.resource(kHca)->healthy, hca);
  EXPECT_EQ(kubelet_.resource(kMemory)->healthy, memory);
  EXPECT_TRUE(kubelet_.Readmit("pod").ok());
}

TEST_F(PluginProcessTest, StopsWithinTwoSecondsWithStreamsOpen) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run();
  ASSERT_TRUE(Advertised()) << plugin->output();
  const auto begin = steady_clock::now();
  plugin->Signal(SIGTERM);
  EXPECT_EQ(plugin->Wait(kGenerous), 0) << plugin->output();
  const auto taken = steady_clock::now() - begin;
  EXPECT_LT(taken, 2s);
  fmt::print("stopped {:.1f} ms after SIGTERM\n", Milliseconds(taken));
  EXPECT_FALSE(std::filesystem::exists(Socket(kHca)));
  EXPECT_FALSE(std::filesystem::exists(Socket(kMemory)));
}

TEST_F(PluginProcessTest, StartsOverTheSocketsOfAKilledOne) {
  ASSERT_TRUE(kubelet_.Start().ok());
  auto plugin = Run();
  ASSERT_TRUE(Advertised()) << plugin->output();
  plugin->Signal(SIGKILL);
  ASSERT_EQ(plugin->Wait(5s), 128 + SIGKILL);
  const std::filesystem::path dead = Socket(kHca);
  ASSERT_TRUE(std::filesystem::exists(dead));
  plugin = Run();
  EXPECT_TRUE(Registered(kHca, 2)) << plugin->output();
  EXPECT_TRUE(Registered(kMemory, 2)) << plugin->output();
  EXPECT_FALSE(std::filesystem::exists(dead));
}

TEST_F(PluginProcessTest, SaysLoudlyThatTheDirectoryIsMissingAndWaitsForIt) {
  const auto plugin = Run();
  ASSERT_TRUE(plugin->WaitForOutput("--kubelet-root-dir", kGenerous));
  EXPECT_THAT(plugin->output(), HasSubstr("level=error"));
  EXPECT_THAT(plugin->output(), HasSubstr(node_.kubelet_root()));
  const auto begin = steady_clock::now();
  ASSERT_TRUE(kubelet_.Start().ok());
  ASSERT_TRUE(Advertised()) << plugin->output();
  fmt::print("capacity seen {:.1f} ms after the kubelet's first start\n",
             Milliseconds(steady_clock::now() - begin));
}

TEST_F(PluginProcessTest, AnotherInstallationEndsWithAClearError) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run();
  ASSERT_TRUE(Advertised()) << plugin->output();
  const auto second = Run({"--installation", "another"});
  EXPECT_EQ(second->Wait(kGenerous), 1);
  EXPECT_THAT(second->output(), HasSubstr("another device plugin serves"));
  EXPECT_TRUE(kubelet_.Allocate("pod", {{kHca, 1}}).ok());
  EXPECT_EQ(kubelet_.resource(kHca)->registrations, 1);
}

// A rolling update with maxSurge: the new pod must be ready before the old one
// is ended.
TEST_F(PluginProcessTest, ANewVersionTakesOverWhileTheOldOneRuns) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto old = Run();
  ASSERT_TRUE(Advertised()) << old->output();
  const std::set<std::string> ids = kubelet_.resource(kHca)->healthy;
  ASSERT_TRUE(kubelet_.Allocate("pod", {{kHca, 3}, {kMemory, 64}}).ok());
  const auto newer = Run();
  ASSERT_TRUE(newer->WaitForOutput("the newer one takes over", kGenerous));
  ASSERT_TRUE(Registered(kHca, 2) && Registered(kMemory, 2)) << newer->output();
  EXPECT_EQ(kubelet_.resource(kHca)->plugins, 2);
  EXPECT_TRUE(kubelet_.Readmit("pod").ok());
  old->Signal(SIGTERM);
  EXPECT_EQ(old->Wait(kGenerous), 0);
  for (const char* resource : {kHca, kMemory}) {
    EXPECT_TRUE(kubelet_.WaitFor(
        resource, [](const auto& r) { return r.plugins == 1; }, kGenerous));
  }
  // At no time was it without one.
  for (const fakes::KubeletEvent& event : kubelet_.history())
    EXPECT_TRUE(event.what == "registered" || event.allocatable > 0);
  EXPECT_EQ(kubelet_.resource(kHca)->healthy, ids);
  EXPECT_TRUE(kubelet_.Readmit("pod").ok());
  EXPECT_TRUE(kubelet_.Allocate("another", {{kHca, 1}}).ok());
}

TEST_F(PluginProcessTest, RegistersInPluginsRegistryWhereToldTo) {
  fakes::Kubelet kubelet(node_.kubelet_root(), {},
                         {.kubelet_socket = false, .plugins_registry = true});
  ASSERT_TRUE(kubelet.Start().ok());
  const auto plugin = Run({"--registration", "plugins-registry"});
  EXPECT_TRUE(kubelet.WaitForAllocatable(kHca, kGenerous)) << plugin->output();
  EXPECT_TRUE(kubelet.WaitForAllocatable(kMemory, kGenerous));
  EXPECT_TRUE(kubelet.Allocate("pod", {{kHca, 1}, {kMemory, 1}}).ok());
}

TEST_F(PluginProcessTest, ScansOnSighup) {
  const std::string config = WriteConfig(
      "version: v1\nrescanInterval: 1h\n"
      "resources: {pools: [{resourceName: hca}, {resourceName: late, "
      "selectors: {ifNames: [late0]}}], allowOverlap: true}\n");
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run({"--config", config});
  ASSERT_TRUE(Advertised()) << plugin->output();
  // Which no look shows.
  node_.sysfs().SetGid(
      "rxe0", 1,
      {.index = 5, .gid = "fe80::5", .type = "RoCE v2", .netdev = "late0"});
  plugin->Signal(SIGHUP);
  EXPECT_TRUE(kubelet_.WaitForAllocatable("rdma/late", kGenerous))
      << plugin->output();
}

TEST_F(PluginProcessTest, AChangeIsSeenWithoutTheTimer) {
  const std::string config = WriteConfig("version: v1\nrescanInterval: 1h\n");
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run({"--config", config});
  ASSERT_TRUE(Advertised()) << plugin->output();
  auto has = [&](size_t units) {
    return kubelet_.WaitFor(
        kHca, [&](const auto& r) { return r.healthy.size() == units; },
        kGenerous);
  };
  node_.sysfs().SetPortState("rxe0", 1, 1);
  EXPECT_TRUE(has(0)) << plugin->output();
  node_.sysfs().SetPortState("rxe0", 1, 4);
  EXPECT_TRUE(has(1000)) << plugin->output();
}

TEST_F(PluginProcessTest, ScansOnItsTimer) {
  node_.sysfs().RemoveDevice("rxe0");
  const std::string config =
      WriteConfig("version: v1\nrescanInterval: 100ms\n");
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run({"--config", config});
  ASSERT_TRUE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return r.lists == 1; }, kGenerous));
  EXPECT_EQ(kubelet_.resource(kHca)->capacity(), 0u);
  node_.AddRxe("rxe0");
  EXPECT_TRUE(Advertised()) << plugin->output();
}

// As a ConfigMap's volume changes: a new directory, and a link to it renamed.
TEST_F(PluginProcessTest, FollowsItsConfigMap) {
  fakes::FileTree& tree = node_.tree();
  auto write = [&](int shares) {
    const std::string directory = fmt::format("..2026_{}", shares);
    tree.Write("cm/" + directory + "/config.yaml",
               fmt::format("version: v1\nrescanInterval: 1h\nresources: "
                           "{{pools: [{{resourceName: hca, rdmaHcaMax: {}}}]}}",
                           shares));
    tree.Link("cm/..data_tmp", directory);
    std::filesystem::rename(tree.path("cm/..data_tmp"), tree.path("cm/..data"));
  };
  auto has = [&](size_t shares) {
    return kubelet_.WaitFor(
        kHca, [&](const auto& r) { return r.healthy.size() == shares; },
        kGenerous);
  };
  write(10);
  tree.Link("cm/config.yaml", "..data/config.yaml");
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::vector<std::string> config = {"--config",
                                           tree.path("cm/config.yaml")};
  const auto plugin = Run(config);
  ASSERT_TRUE(has(10)) << plugin->output();
  write(20);
  EXPECT_TRUE(has(20)) << plugin->output();
  EXPECT_EQ(kubelet_.resource(kHca)->registrations, 1);
}

// As when the node's inotify instances are used up.
TEST_F(PluginProcessTest, FollowsItsConfigurationWithoutInotify) {
  const std::vector<std::string> without = {
      "/usr/bin/unshare",
      "--user",
      "--map-root-user",
      "/bin/sh",
      "-c",
      "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$@\"",
      "sh"};
  std::vector<std::string> check = without;
  check.push_back("/bin/true");
  if (RunBare(check)->Wait(kGenerous) != 0)
    GTEST_SKIP() << "SKIPPED: no user namespace may be made here";
  const std::string text =
      "version: v1\nrescanInterval: 1h\n"
      "resources: {pools: [{resourceName: hca, rdmaHcaMax: ";
  const std::string config = WriteConfig(text + "10}]}\n");
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run({"--config", config}, without);
  ASSERT_TRUE(Advertised()) << plugin->output();
  EXPECT_TRUE(plugin->WaitForOutput("inotify is not to be had", kGenerous));
  WriteConfig(text + "20}]}\n");
  EXPECT_TRUE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return r.healthy.size() == 20; }, kGenerous))
      << plugin->output();
  // Nor does it need it for the kubelet's restart.
  ASSERT_TRUE(kubelet_.Restart().ok());
  EXPECT_TRUE(Registered(kHca, 2)) << plugin->output();
}

TEST_F(PluginProcessTest, ABadConfigurationIsExitCodeTwoWithLineAndColumn) {
  const std::string bad =
      WriteConfig("version: v1\nresorces: {}\nrescanInterval: never\n");
  for (const char* flag : {"--config", "--check-config"}) {
    const auto plugin = Run({flag, bad});
    EXPECT_EQ(plugin->Wait(kGenerous), 2);
    EXPECT_THAT(plugin->output(), HasSubstr(bad + ":2:1"));
    EXPECT_THAT(plugin->output(), HasSubstr(bad + ":3:"));
    EXPECT_THAT(plugin->output(), HasSubstr("did you mean \"resources\"?"));
  }
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{
           {"--bogus"},
           {"--config", "/does/not/exist"},
           {"--log-level", "loud"},
           {"--kubelet-root-dir", "relative"},
           {"--registration", "both"},
           {"--kubelet-root-dir", "/" + std::string(100, 'x')}}) {
    const auto plugin = RunBare([&] {
      std::vector<std::string> command = {
          fakes::BuiltPath("plugin/purser-device-plugin"), "--sysfs-root",
          node_.sysfs_root(), "--metrics-address", "127.0.0.1:0"};
      command.insert(command.end(), wrong.begin(), wrong.end());
      return command;
    }());
    EXPECT_EQ(plugin->Wait(kGenerous), 2) << wrong[0];
    EXPECT_THAT(plugin->output(), Not(testing::IsEmpty()));
  }
}

TEST_F(PluginProcessTest, CheckConfigTouchesNothingOfTheKubelets) {
  const auto plugin = Run({"--check-config", WriteConfig("version: v1\n")});
  EXPECT_EQ(plugin->Wait(kGenerous), 0);
  EXPECT_THAT(plugin->output(), HasSubstr("1,000 units"));
  EXPECT_FALSE(std::filesystem::exists(node_.kubelet_root()));
}

TEST_F(PluginProcessTest, NeedsNoCapability) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin =
      Run({}, {"/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all",
               "--ambient-caps=-all", "--no-new-privs"});
  ASSERT_TRUE(Advertised()) << plugin->output();
  EXPECT_EQ(Status(*plugin, "CapEff"), "0000000000000000");
  EXPECT_EQ(Status(*plugin, "CapPrm"), "0000000000000000");
  EXPECT_TRUE(kubelet_.Allocate("pod", {{kHca, 1}, {kMemory, 1}}).ok());
  ASSERT_TRUE(kubelet_.Restart().ok());
  EXPECT_TRUE(Registered(kHca, 2)) << plugin->output();
}

TEST_F(PluginProcessTest, IsSmallWithOneDevice) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run();
  ASSERT_TRUE(Advertised()) << plugin->output();
  ASSERT_TRUE(kubelet_.Allocate("pod", {{kHca, 1}, {kMemory, 64}}).ok());
  const double rss = std::stod(Status(*plugin, "VmRSS")) / 1024.0;
  const double anonymous = std::stod(Status(*plugin, "RssAnon")) / 1024.0;
  fmt::print("1 device: RSS {:.1f} MiB, anonymous {:.1f} MiB, {} threads\n",
             rss, anonymous, Status(*plugin, "Threads"));
  EXPECT_LE(rss, 22.0);
  EXPECT_LE(anonymous, 5.0);
}

TEST_F(PluginProcessTest, IsSmallWithAHundredThousandUnits) {
  constexpr int kUnits = 100'000;
  const std::string config = WriteConfig(fmt::format(
      "version: v1\nresources: {{queueMemory: {{capacity: {}Mi}}}}\n", kUnits));
  ASSERT_TRUE(kubelet_.Start().ok());
  const auto plugin = Run({"--config", config});
  ASSERT_TRUE(Advertised()) << plugin->output();
  std::vector<double> milliseconds;
  size_t bytes = 0;
  for (int i = 0; i < 21; ++i) {
    const auto begin = steady_clock::now();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1beta1::DevicePlugin::NewStub(grpc::CreateCustomChannel(
        "unix:" + Socket(kMemory).string(), grpc::InsecureChannelCredentials(),
        arguments));
    grpc::ClientContext context;
    const auto reader = stub->ListAndWatch(&context, v1beta1::Empty());
    v1beta1::ListAndWatchResponse list;
    ASSERT_TRUE(reader->Read(&list));
    milliseconds.push_back(Milliseconds(steady_clock::now() - begin));
    ASSERT_EQ(list.devices_size(), kUnits);
    bytes = list.ByteSizeLong();
    context.TryCancel();
    reader->Finish();
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  const double rss = std::stod(Status(*plugin, "VmRSS")) / 1024.0;
  fmt::print(
      "{} units: first list of {} bytes {:.1f} ms (median), {:.1f} ms "
      "(longest) after connecting; RSS {:.1f} MiB, anonymous {:.1f} MiB\n",
      kUnits, bytes, milliseconds[milliseconds.size() / 2], milliseconds.back(),
      rss, std::stod(Status(*plugin, "RssAnon")) / 1024.0);
  EXPECT_LT(bytes, size_t{4} << 20);
  EXPECT_LT(rss, 64.0);
}

}  // namespace
}  // namespace purser::plugin
