// SPDX-License-Identifier: Apache-2.0
//
// The plugin with exactly the privileges of each step of the table in
// docs/operations.md, as uid 0 with a read-only root: what the step is for
// works with them, and without them the plugin says so and the rest goes on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file_descriptor.h"
#include "spdlog/fmt/fmt.h"
#include "tests/fakes/fake_pod_resources.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/kubelet.h"
#include "tests/fakes/paths.h"
#include "tests/integration/process.h"

namespace purser::rxe {
namespace {

using namespace std::chrono_literals;
using integration::Process;
using ::testing::HasSubstr;

constexpr const char* kHca = "rdma/hca";
constexpr const char* kSelected = "rdma/selected";
constexpr const char* kQueuePairs = "rdma/qp-64";
constexpr auto kGenerous = 20s;
constexpr const char* kCgroup = "/sys/fs/cgroup/purser-privileges";
constexpr const char* kNetns = "purser-privileges";
constexpr const char* kAddress = "127.0.0.1:9836";

// As a container runtime does: /dev/null and its like, terminals, and, if it is
// allotted, the major number of the node.
void AllowDevices(int cgroup, bool verbs) {
  struct stat node {};
  ASSERT_EQ(stat("/dev/infiniband/uverbs0", &node), 0);
  const auto major_number = static_cast<int>(major(node.st_rdev));
  const auto load_major = bpf_insn{
      .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = 4};
  auto allow_if = [](int number, short jump) {
    return bpf_insn{.code = BPF_JMP | BPF_JEQ | BPF_K,
                    .dst_reg = 2,
                    .off = jump,
                    .imm = number};
  };
  auto result = [](int allow) {
    return bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = allow};
  };
  const bpf_insn exit{.code = BPF_JMP | BPF_EXIT};
  const bpf_insn program[] = {load_major,
                              allow_if(1, 5),
                              allow_if(5, 4),
                              allow_if(136, 3),
                              allow_if(verbs ? major_number : 1, 2),
                              result(0),
                              exit,
                              result(1),
                              exit};
  bpf_attr attr{};
  attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attr.insn_cnt = std::size(program);
  attr.insns = reinterpret_cast<uintptr_t>(program);
  attr.license = reinterpret_cast<uintptr_t>("GPL");
  const base::FileDescriptor loaded(
      static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr)));
  ASSERT_TRUE(loaded.valid()) << std::strerror(errno);
  bpf_attr attach{};
  attach.target_fd = static_cast<uint32_t>(cgroup);
  attach.attach_bpf_fd = static_cast<uint32_t>(loaded.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  ASSERT_EQ(syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof attach), 0)
      << std::strerror(errno);
}

// What a step grants beside uid 0.
struct Granted {
  bool host_network = false, host_pid = false;
  std::string capability;  // "sys_ptrace"
  bool verbs_devices = false;
};

class PluginPrivileges : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "SKIPPED: no RDMA device rxe0 here; run it by "
                      "tests/rxe/run";
    std::ifstream("/sys/class/infiniband/rxe0/parent") >> netdev_;
    if (netdev_.rfind("dummy", 0) != 0)
      GTEST_SKIP() << "SKIPPED: rxe0 is on " << netdev_ << ", which is in use";
    tree_.Write("config.yaml",
                "version: v1\nresources:\n  allowOverlap: true\n"
                "  pools: [{resourceName: hca}, {resourceName: selected, "
                "selectors: {ifNames: [" +
                    netdev_ +
                    "]}}]\n  queuePairs: {enabled: true, unit: 64}\n");
    ASSERT_TRUE(kubelet_.Start().ok());
    std::filesystem::create_directory(kCgroup);
    ASSERT_EQ(std::system(fmt::format("ip netns add {0} && ip netns exec {0} "
                                      "ip link set lo up",
                                      kNetns)
                              .c_str()),
              0);
  }
  void TearDown() override {
    plugin_.reset();
    hog_.reset();
    (void)std::system(
        fmt::format("ip netns del {} 2>/dev/null", kNetns).c_str());
    std::error_code ignored;
    for (int i = 0; i < 100 && !std::filesystem::remove(kCgroup, ignored); ++i)
      std::this_thread::sleep_for(50ms);
  }

  // As a container's first process: in its cgroup, its namespaces, with
  // nothing to be written but what is mounted for it, and no capability but
  // one.
  void Run(const Granted& granted, std::vector<std::string> options = {}) {
    host_network_ = granted.host_network;
    {
      const base::FileDescriptor cgroup(
          open(kCgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      AllowDevices(cgroup.get(), granted.verbs_devices);
    }
    std::vector<std::string> command = {
        "/bin/sh", "-c",
        fmt::format("echo $$ >{}/cgroup.procs && exec \"$@\"", kCgroup), "sh"};
    auto add = [&](std::vector<std::string> words) {
      command.insert(command.end(), words.begin(), words.end());
    };
    if (!granted.host_network) add({"/usr/sbin/ip", "netns", "exec", kNetns});
    if (!granted.host_pid)
      add({"/usr/bin/unshare", "--pid", "--fork", "--kill-child",
           "--mount-proc"});
    const std::string set =
        granted.capability.empty() ? "-all" : "-all,+" + granted.capability;
    add({"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
         "mount -o remount,bind,ro / && mount -o remount,bind,ro /sys && "
         "! touch /purser-writable 2>/dev/null && exec setpriv "
         "--bounding-set=" +
             set + " --inh-caps=-all --ambient-caps=-all --no-new-privs \"$@\"",
         "sh"});
    add({fakes::BuiltPath("plugin/purser-device-plugin"), "--config",
         tree_.path("config.yaml"), "--kubelet-root-dir", tree_.path("kubelet"),
         "--metrics-address", kAddress, "--container-log-dir",
         tree_.path("containers")});
    add(std::move(options));
    plugin_ = std::make_unique<Process>(std::move(command));
    ASSERT_TRUE(kubelet_.WaitForAllocatable(kHca, kGenerous))
        << Output() << plugin_->output();
  }
  std::string Output() {
    plugin_->WaitForOutput("\n", 1s);
    return plugin_->output();
  }

  std::string Get(const std::string& path) const {
    const std::string command = fmt::format(
        "{}curl -s http://{}/{}",
        host_network_ ? "" : fmt::format("ip netns exec {} ", kNetns), kAddress,
        path);
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      text.append(buffer, n);
    pclose(pipe);
    return text;
  }
  // A scrape may show the reading before.
  void ExpectMetric(const std::string& line) const {
    std::string text;
    for (int i = 0; i < 50; ++i) {
      text = Get("metrics");
      if (text.find(line) != std::string::npos) return;
      std::this_thread::sleep_for(200ms);
    }
    ADD_FAILURE() << line << "\n" << text;
  }
  void ExpectSource(const std::string& source, const std::string& reason) {
    ExpectMetric(
        fmt::format("node_view_source_up{{source=\"{}\",reason=\"{}\"}} {}",
                    source, reason, reason.empty() ? 1 : 0));
  }
  void ExpectEvents(const std::string& source, const std::string& reason) {
    ExpectMetric(
        fmt::format("event_source_up{{source=\"{}\",reason=\"{}\"}} {}", source,
                    reason, reason.empty() ? 1 : 0));
  }
  void ExpectLog(const std::string& text) {
    EXPECT_TRUE(plugin_->WaitForOutput(text, kGenerous)) << text << "\n"
                                                         << plugin_->output();
  }
  bool Becomes(const char* resource, bool healthy) {
    return kubelet_.WaitFor(
        resource, [&](const auto& r) { return !r.healthy.empty() == healthy; },
        kGenerous);
  }
  // Somebody who holds queue pairs, outside pods.
  void Hold() {
    hog_ = std::make_unique<Process>(std::vector<std::string>{
        fakes::BuiltPath("tests/rxe/queue_hog"), "rxe0", "20", "64", "1"});
    ASSERT_TRUE(hog_->WaitForOutput("20\n", kGenerous));
  }

  fakes::FileTree tree_;
  std::string netdev_;
  bool host_network_ = false;
  fakes::Kubelet kubelet_{tree_.path("kubelet")};
  std::unique_ptr<Process> plugin_, hog_;
};

TEST_F(PluginPrivileges, TheBaseTakesNone) {
  Hold();
  Run({});
  EXPECT_TRUE(Becomes("rdma/wqe-mib", true));
  EXPECT_TRUE(kubelet_.Allocate("pod", {{kHca, 1}, {"rdma/wqe-mib", 1}}).ok());
  // Health by what sysfs shows.
  ASSERT_EQ(std::system(("ip link set " + netdev_ + " down").c_str()), 0);
  EXPECT_TRUE(Becomes(kHca, false));
  ExpectMetric("purser_port_up{device=\"rxe0\",port=\"1\"} 0");
  ASSERT_EQ(std::system(("ip link set " + netdev_ + " up").c_str()), 0);
  EXPECT_TRUE(Becomes(kHca, true));
  // What it goes without, in metric and log.
  ExpectEvents("rtnetlink", "other_netns");
  ExpectLog("source=rtnetlink reason=other_netns");
  ExpectEvents("async_events", "off");
  ExpectSource("netlink", "");
  ExpectSource("vmallocinfo", "");
  ExpectSource("raw_context", "not_needed");
  ExpectSource("processes", "not_visible");
  for (const char* source : {"container_names", "pod_resources"}) {
    ExpectSource(source, "absent");
    ExpectLog(fmt::format("source={} reason=absent", source));
  }
  ExpectMetric("purser_node_queue_pairs{device=\"rxe0\"");
}

TEST_F(PluginPrivileges, TheHostNetworkShowsInterfacesAndTheirEvents) {
  Run({.host_network = true});
  ExpectEvents("rtnetlink", "");
  EXPECT_TRUE(Becomes(kSelected, true));
}

TEST_F(PluginPrivileges, NamesAndAllotmentsTakeTheirMounts) {
  tree_.Link("containers/pod-a_ns_app-" + std::string(64, 'a') + ".log",
             "/none");
  fakes::FakePodResources pods(
      tree_.path("kubelet/pod-resources/kubelet.sock"));
  pods.Give("ns", "pod-a", "app", kHca, 3);
  Run({});
  ExpectSource("container_names", "");
  ExpectSource("pod_resources", "");
  ExpectMetric("purser_device_plugin_allocated{resource=\"rdma/hca\"} 3");
}

TEST_F(PluginPrivileges, TheHostsPidsTellWhoHoldsWhat) {
  Hold();
  Run({.host_pid = true});
  ExpectSource("processes", "");
  ExpectSource("mappings", "not_permitted");
  ExpectLog("source=mappings reason=not_permitted");
  ExpectMetric(
      "container=\"host\",charged_to=\"node\",exactness=\"estimated\"}");
}

TEST_F(PluginPrivileges, PtraceTellsItToTheByte) {
  Hold();
  Run({.host_pid = true, .capability = "sys_ptrace"});
  ExpectSource("mappings", "");
  ExpectMetric("container=\"host\",charged_to=\"node\",exactness=\"exact\"}");
}

TEST_F(PluginPrivileges, DevicesAreOpenedOnlyWhereTheCgroupAllowsIt) {
  Run({}, {"--open-devices", "auto"});
  ExpectEvents("async_events", "not_permitted");
  ExpectLog("source=async_events reason=not_permitted");
  EXPECT_THAT(Get("readyz"), HasSubstr("max_qp is not known: rxe0"));
  EXPECT_EQ(kubelet_.resource(kQueuePairs)->capacity(), 0u);
  plugin_.reset();

  Run({.verbs_devices = true}, {"--open-devices", "auto"});
  ExpectEvents("async_events", "");
  EXPECT_TRUE(Becomes(kQueuePairs, true));
  const std::string link = "ip link set " + netdev_;
  ASSERT_EQ(std::system((link + " down && " + link + " up").c_str()), 0);
  ExpectLog("device event");
}

TEST_F(PluginPrivileges, CdiTakesItsDirectory) {
  auto write = [this](const std::string& directory) {
    tree_.Write("config.yaml", "version: v1\ncdi: {enabled: true, directory: " +
                                   directory + "}\n");
  };
  write("/purser-cdi");
  Run({});
  ExpectMetric("cdi_in_place{resource=\"rdma/hca\"} 0");
  ExpectLog("cannot write a CDI specification");
  auto pod = kubelet_.Allocate("pod-a", {{kHca, 1}});
  ASSERT_TRUE(pod.ok());
  EXPECT_FALSE(pod->devices.empty());
  plugin_.reset();

  write(tree_.path("cdi"));
  Run({});
  ExpectMetric("cdi_in_place{resource=\"rdma/hca\"} 1");
  pod = kubelet_.Allocate("pod-b", {{kHca, 1}});
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(pod->cdi_devices.size(), 1u);
}

}  // namespace
}  // namespace purser::rxe
