// SPDX-License-Identifier: Apache-2.0
//
// The node view in the plugin: what it is told of the plugin's own, and that it
// shows on /metrics.
#include "plugin/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/app.h"
#include "plugin/flags.h"
#include "tests/fakes/fake_pod_resources.h"
#include "tests/fakes/kubelet.h"
#include "tests/unit/plugin/http_get.h"
#include "tests/unit/plugin/rdma_node.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kLong = 60s;  // only a failing test waits that long

class PluginNodeViewTest : public ::testing::Test {
 protected:
  PluginNodeViewTest() {
    config_.sysfs_root = node_.sysfs_root();
    config_.dev_root = node_.dev_root();
    config_.proc_root = node_.proc_root();
    config_.kubelet_root_dir = node_.kubelet_root();
    config_.metrics_address = "127.0.0.1:0";
    config_.node_view.container_log_dir = node_.tree().path("containers");
    config_.node_view.cgroup_root = node_.tree().path("cgroup");
  }
  // /metrics, once the kubelet has the resource and the view was read.
  std::string Metrics() {
    const absl::StatusOr<std::unique_ptr<App>> app =
        App::Create(config_, "1.2.3");
    EXPECT_TRUE(app.ok()) << app.status();
    if (!app.ok()) return "";
    EXPECT_TRUE(kubelet_.WaitForAllocatable("rdma/wqe-mib", kLong));
    const auto until = std::chrono::steady_clock::now() + kLong;
    std::string metrics;
    do {
      metrics = HttpGet((*app)->metrics_port(), "/metrics");
    } while (config_.node_view.enabled &&
             metrics.find("purser_node_view_read_seconds ") ==
                 std::string::npos &&
             std::chrono::steady_clock::now() < until);
    return metrics;
  }

  RdmaNode node_;
  Config config_;
  fakes::Kubelet kubelet_{node_.kubelet_root()};
};

TEST_F(PluginNodeViewTest, MetricsTellWhoHoldsWhat) {
  node_.AddRxe("rxe0");
  ASSERT_TRUE(kubelet_.Start().ok());
  fakes::FakePodResources pod_resources(
      node_.tree().path("kubelet/pod-resources/kubelet.sock"));
  pod_resources.Give("ns", "pod", "sidecar", "rdma/wqe-mib", 64);
  pod_resources.Give("ns", "pod", "app", "nvidia.com/gpu", 8);
  // 3 GiB of memory, of which pods may have all but 256 MiB.
  node_.tree().Write("cgroup/kubepods.slice/memory.max", "2952790016\n");
  const std::string metrics = Metrics();
  EXPECT_THAT(
      metrics,
      HasSubstr("purser_node_allocated_units{resource=\"rdma/wqe-mib\","
                "namespace=\"ns\",pod=\"pod\",container=\"sidecar\"} 64\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("nvidia")));
  EXPECT_THAT(
      metrics,
      HasSubstr("purser_device_plugin_allocated{resource=\"rdma/wqe-mib\"} "
                "64\n"));
  // Soft-RoCE charges nobody: 307 MiB are advertised, 256 reserved.
  EXPECT_THAT(metrics,
              HasSubstr("purser_node_reserved_memory_bytes 268435456\n"));
  EXPECT_THAT(
      metrics,
      HasSubstr("purser_node_unreserved_queue_memory_bytes 53477376\n"));
}

TEST_F(PluginNodeViewTest, WhatContainersPayForNeedsNoReserve) {
  node_.sysfs().AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  node_.tree().Write("cgroup/kubepods.slice/memory.max", "3221225472\n");
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics, HasSubstr("purser_node_reserved_memory_bytes 0\n"));
  EXPECT_THAT(metrics,
              HasSubstr("purser_node_unreserved_queue_memory_bytes 0\n"));
}

TEST_F(PluginNodeViewTest, IsOffOnRequest) {
  node_.AddRxe("rxe0");
  config_.node_view.enabled = false;
  ASSERT_TRUE(kubelet_.Start().ok());
  EXPECT_THAT(Metrics(), Not(HasSubstr("purser_node_")));
}

absl::StatusOr<Config> Parse(std::vector<std::string> arguments,
                             std::optional<int>* exit_code = nullptr) {
  arguments.insert(arguments.begin(), "purser-device-plugin");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const ParsedFlags parsed =
      ParseFlags(static_cast<int>(argv.size()), argv.data(), "1.2.3");
  if (exit_code != nullptr) *exit_code = parsed.exit_code;
  return ConfigFromFlags(parsed.flags);
}

TEST(NodeViewFlagsTest, SetWhereItReads) {
  const auto defaults = Parse({});
  ASSERT_TRUE(defaults.ok());
  EXPECT_TRUE(defaults->node_view.enabled);
  const auto config = Parse(
      {"--node-view=off", "--pod-resources-socket=/a", "--container-log-dir=/b",
       "--proc-root=/c", "--cgroup-root=/d", "--node-allocatable-memory=3Gi"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->node_view.enabled);
  EXPECT_EQ(config->node_view.pod_resources_socket, "/a");
  EXPECT_EQ(config->node_view.container_log_dir, "/b");
  EXPECT_EQ(config->node_view.proc_root, "/c");
  EXPECT_EQ(config->node_view.cgroup_root, "/d");
  EXPECT_EQ(config->node_view.allocatable_memory_bytes, 3ull << 30);
  for (const char* wrong :
       {"--node-view=maybe", "--node-allocatable-memory=x"}) {
    std::optional<int> exit_code;
    (void)Parse({wrong}, &exit_code);
    EXPECT_EQ(exit_code, 2) << wrong;
  }
}

}  // namespace
}  // namespace purser::plugin
