// SPDX-License-Identifier: Apache-2.0
#include "plugin/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strict_yaml.h"
#include "plugin/check_config.h"
#include "plugin/config/unit_limit.h"
#include "plugin/live_endpoints.h"
#include "tests/fakes/kubelet.h"
#include "tests/unit/plugin/http_get.h"
#include "tests/unit/plugin/rdma_node.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHca = "rdma/hca";
// Only a failing test waits that long; a loaded machine may take some of it.
constexpr auto kLong = 60s;
constexpr const char* kMemory = "rdma/wqe-mib";

class AppTest : public ::testing::Test {
 protected:
  AppTest() {
    config_.sysfs_root = node_.sysfs_root();
    config_.dev_root = node_.dev_root();
    config_.proc_root = node_.proc_root();
    config_.kubelet_root_dir = node_.kubelet_root();
    config_.metrics_address = "127.0.0.1:0";
    config_.health_debounce = std::chrono::milliseconds(0);
    config_.node_view.enabled = false;  // it reads this machine
  }
  std::unique_ptr<App> Create() {
    absl::StatusOr<std::unique_ptr<App>> app = App::Create(config_, "1.2.3");
    EXPECT_TRUE(app.ok()) << app.status();
    return app.ok() ? *std::move(app) : nullptr;
  }
  bool Has(const char* resource, size_t allocatable) {
    return kubelet_.WaitFor(
        resource,
        [&](const auto& r) { return r.healthy.size() == allocatable; }, kLong);
  }

  // What /readyz says in the end.
  static std::string ReadyzOnceReady(const App& app) {
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (true) {
      const std::string readyz = HttpGet(app.metrics_port(), "/readyz");
      if (readyz.find("200 OK") != std::string::npos ||
          std::chrono::steady_clock::now() > until)
        return readyz;
    }
  }

  RdmaNode node_;
  Config config_;
  fakes::Kubelet kubelet_{node_.kubelet_root()};
};

TEST_F(AppTest, WithoutConfigurationItOffersSharesAndMemory) {
  node_.AddRxe("rxe0");
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has(kHca, 1000));
  ASSERT_TRUE(Has(kMemory, 307));
  const auto pod = kubelet_.Allocate("pod", {{kHca, 1}, {kMemory, 64}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->envs.at("PURSER_QUEUE_MEMORY_BYTES"), "67108864");
  EXPECT_EQ(pod->envs.at("PURSER_POOL_HCA_DEVICES"), "rxe0");
  EXPECT_EQ(pod->devices.size(), 2u);
  EXPECT_TRUE(pod->conflicts.empty());
}

TEST_F(AppTest, TwoPoolsAndMemoryInOneContainerDoNotCollide) {
  node_.AddRxe("rxe0");
  node_.sysfs().AddDevice(fakes::SysfsMlx5TwoPorts("mlx5_0"));
  PoolConfig soft, hard;
  soft.resource_name = "soft";
  soft.selectors = {{.drivers = {"rdma_rxe"}}};
  hard.resource_name = "hard";
  hard.selectors = {{.drivers = {"mlx5_core"}}};
  config_.pools = {soft, hard};
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has("rdma/soft", 1000) && Has("rdma/hard", 1000) &&
              Has(kMemory, 307));
  const auto pod = kubelet_.Allocate(
      "pod", {{"rdma/soft", 1}, {"rdma/hard", 2}, {kMemory, 1}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_TRUE(pod->conflicts.empty());
  std::vector<std::string> variables;
  for (const auto& [name, value] : pod->envs) variables.push_back(name);
  EXPECT_THAT(variables, testing::ElementsAre("PURSER_POOL_HARD_DEVICES",
                                              "PURSER_POOL_HARD_GID_INDEX",
                                              "PURSER_POOL_SOFT_DEVICES",
                                              "PURSER_POOL_SOFT_GID_INDEX",
                                              "PURSER_QUEUE_MEMORY_BYTES"));
  EXPECT_EQ(pod->envs.at("PURSER_POOL_SOFT_DEVICES"), "rxe0");
  EXPECT_EQ(pod->envs.at("PURSER_POOL_HARD_DEVICES"), "mlx5_0");
}

TEST_F(AppTest, SharesOfOneContainerAreOfOneDevice) {
  node_.AddRxe("rxe0");
  node_.AddRxe("rxe1");
  config_.pools[0].unit = PoolUnit::kDeviceShare;
  config_.pools[0].rdma_hca_max = 3;
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has(kHca, 6));
  for (const char* container : {"a", "b"}) {
    const auto pod = kubelet_.Allocate(container, {{kHca, 2}});
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_THAT(pod->envs.at("PURSER_POOL_HCA_DEVICES"),
                testing::AnyOf("rxe0", "rxe1"));
    EXPECT_EQ(pod->devices.size(), 2u);
  }
  // One share is left of each.
  const auto both = kubelet_.Allocate("c", {{kHca, 2}});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->envs.at("PURSER_POOL_HCA_DEVICES"), "rxe0,rxe1");
}

TEST_F(AppTest, ContainersGetNamesOfDevicesWhereCdiIsWanted) {
  node_.AddRxe("rxe0");
  config_.cdi = true;
  config_.cdi_dir = node_.tree().path("cdi");
  ASSERT_TRUE(kubelet_.Start().ok());
  std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has(kHca, 1000));
  const auto pod = kubelet_.Allocate("pod", {{kHca, 1}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_THAT(pod->cdi_devices,
              testing::ElementsAre("purser.dev/rdma_hca=rxe0"));
  EXPECT_TRUE(pod->devices.empty());
  auto specification = [&]() -> std::string {
    for (const auto& entry :
         std::filesystem::directory_iterator(config_.cdi_dir))
      return base::ReadFile(entry.path().string()).value();
    return "";
  };
  EXPECT_THAT(specification(), HasSubstr("/dev/infiniband/uverbs0"));
  EXPECT_THAT(specification(), Not(HasSubstr("rxe1")));
  node_.AddRxe("rxe1");
  app->Rescan();
  EXPECT_THAT(specification(), HasSubstr("rxe1"));
  app.reset();
  EXPECT_EQ(specification(), "");
}

TEST_F(AppTest, NoDeviceIsZeroUnitsUntilOneComes) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return r.lists == 1; }, kLong));
  EXPECT_EQ(kubelet_.resource(kHca)->capacity(), 0u);
  node_.AddRxe("rxe0");
  app->Rescan();
  EXPECT_TRUE(Has(kHca, 1000));
  EXPECT_TRUE(Has(kMemory, 307));
  node_.sysfs().RemoveDevice("rxe0");
  app->Rescan();
  EXPECT_TRUE(Has(kHca, 0));
  EXPECT_EQ(kubelet_.resource(kHca)->registrations, 1);
}

TEST_F(AppTest, UnitsAreUnhealthyWhileThePortIsDown) {
  node_.AddRxe("rxe0");
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has(kHca, 1000) && Has(kMemory, 307));
  node_.sysfs().SetPortState("rxe0", 1, 1);
  app->Rescan();
  ASSERT_TRUE(Has(kHca, 0));
  EXPECT_EQ(kubelet_.resource(kHca)->capacity(), 1000u);
  EXPECT_EQ(kubelet_.resource(kMemory)->healthy.size(), 307u);
  node_.sysfs().SetPortState("rxe0", 1, 4);
  app->Rescan();
  EXPECT_TRUE(Has(kHca, 1000));
}

TEST_F(AppTest, AFailedScanChangesNothingForTheKubelet) {
  node_.AddRxe("rxe0");
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has(kHca, 1000) && Has(kMemory, 307));
  const int lists = kubelet_.resource(kHca)->lists;
  node_.BreakSysfs();
  app->Rescan();
  EXPECT_THAT(HttpGet(app->metrics_port(), "/metrics"),
              HasSubstr("purser_device_plugin_discovery_errors_total 1\n"));
  EXPECT_EQ(kubelet_.resource(kHca)->healthy.size(), 1000u);
  EXPECT_EQ(kubelet_.resource(kHca)->lists, lists);
}

TEST_F(AppTest, WithoutAFirstGoodScanNothingIsClaimed) {
  node_.AddRxe("rxe0");
  node_.BreakSysfs();
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  EXPECT_THAT(HttpGet(app->metrics_port(), "/metrics"),
              Not(HasSubstr("purser_device_plugin_capacity{")));
  EXPECT_FALSE(kubelet_.resource(kHca));
  node_.RepairSysfs();
  app->Rescan();
  EXPECT_TRUE(Has(kHca, 1000));
}

TEST_F(AppTest, ReadyOnceTheKubeletListensAndNotBefore) {
  node_.AddRxe("rxe0");
  const std::unique_ptr<App> app = Create();
  EXPECT_THAT(HttpGet(app->metrics_port(), "/healthz"), HasSubstr("200 OK"));
  const std::string before = HttpGet(app->metrics_port(), "/readyz");
  EXPECT_THAT(before, HasSubstr("503"));
  EXPECT_THAT(before, HasSubstr("rdma/hca: "));
  ASSERT_TRUE(kubelet_.Start().ok());
  ASSERT_TRUE(Has(kHca, 1000) && Has(kMemory, 307));
  EXPECT_THAT(ReadyzOnceReady(*app),
              HasSubstr("rdma/hca: ready, 1000 units\n"
                        "rdma/wqe-mib: ready, 307 units\n"));
}

TEST_F(AppTest, ReadinessSaysWhyThereAreNoUnits) {
  ASSERT_TRUE(kubelet_.Start().ok());
  PoolConfig fast;
  fast.resource_name = "fast";
  fast.selectors = {{.devices = {"mlx5_*"}}};
  config_.pools = {fast, PoolConfig{}};
  const std::unique_ptr<App> app = Create();
  EXPECT_THAT(ReadyzOnceReady(*app),
              HasSubstr("rdma/hca: ready, 0 units: no usable RDMA device on "
                        "this node\n"));
  node_.AddRxe("rxe0");
  app->Rescan();
  EXPECT_THAT(ReadyzOnceReady(*app),
              HasSubstr("rdma/fast: ready, 0 units: none of this node's RDMA "
                        "devices (rxe0) is selected\n"));
  node_.sysfs().SetPortState("rxe0", 1, 1);
  app->Rescan();
  EXPECT_THAT(ReadyzOnceReady(*app),
              HasSubstr("rdma/hca: ready, 0 of 1000 units healthy: rxe0: no "
                        "port is ACTIVE"));
}

TEST_F(AppTest, MetricsTellWhatIsAdvertised) {
  node_.AddRxe("rxe0");
  node_.AddRxe("rxe1");
  node_.sysfs().SetPortState("rxe1", 1, 1);
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has(kHca, 1000));
  ASSERT_THAT(ReadyzOnceReady(*app), HasSubstr("200 OK"));
  ASSERT_TRUE(kubelet_.Allocate("pod", {{kHca, 1}}).ok());
  const std::string metrics = HttpGet(app->metrics_port(), "/metrics");
  for (const char* line :
       {"purser_device_plugin_build_info{version=\"1.2.3\"} 1\n",
        "purser_device_plugin_capacity{resource=\"rdma/hca\"} 1000\n",
        "purser_device_plugin_allocatable{resource=\"rdma/wqe-mib\"} 307\n",
        "purser_device_plugin_streams{resource=\"rdma/hca\"} 1\n",
        "purser_device_plugin_registrations_total{resource=\"rdma/hca\","
        "result=\"success\"} 1\n",
        "purser_device_plugin_allocations_total{resource=\"rdma/hca\","
        "result=\"granted\"} 1\n",
        "purser_port_up{device=\"rxe0\",port=\"1\"} 1\n",
        "purser_port_up{device=\"rxe1\",port=\"1\"} 0\n",
        "purser_device_healthy{device=\"rxe0\",reason=\"\"} 1\n",
        "purser_device_healthy{device=\"rxe1\",reason=\"port_down\"} 0\n",
        "purser_device_plugin_event_source_up{source=\"uevents\","
        "reason=\"\"} 1\n",
        "purser_device_plugin_event_source_up{source=\"async_events\","
        "reason=\"off\"} 0\n",
        "purser_device_plugin_refreshes_total{cause=\"start\"} 1\n",
        "purser_device_plugin_discovery_errors_total 0\n",
        "purser_device_plugin_streams_opened_total{resource=\"rdma/hca\"} 1\n",
        "purser_device_plugin_lists_sent_total{resource=\"rdma/hca\"} 1\n",
        "purser_device_plugin_registration_info{way=\"kubelet-socket\"} 1\n",
        "purser_device_plugin_allocate_duration_seconds_count{resource="
        "\"rdma/hca\"} 1\n",
        "purser_device_plugin_allocate_duration_seconds_bucket{resource="
        "\"rdma/hca\",le=\"+Inf\"} 1\n"}) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
}

TEST_F(AppTest, StopIsBoundedAndMayBeRepeated) {
  node_.AddRxe("rxe0");
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  ASSERT_TRUE(Has(kHca, 1000) && Has(kMemory, 307));
  const auto begin = std::chrono::steady_clock::now();
  app->Stop();
  app->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_TRUE(Has(kHca, 0));
  const auto live = FindLiveEndpoints(kubelet_.device_plugins_dir().string(),
                                      Identity::Now("test"));
  ASSERT_TRUE(live.ok());
  EXPECT_TRUE(live->empty());
}

TEST_F(AppTest, RefusesToStartWhereItCouldNeverWork) {
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> first = Create();
  Config foreign = config_;
  foreign.installation = "another";
  const absl::Status second = App::Create(foreign, "1.2.3").status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;

  Config taken = config_;
  taken.kubelet_root_dir = node_.tree().path("another");
  taken.metrics_address = fmt::format("127.0.0.1:{}", first->metrics_port());
  EXPECT_TRUE(absl::IsAlreadyExists(App::Create(taken, "1.2.3").status()));

  Config deep = config_;
  deep.kubelet_root_dir = node_.tree().path(std::string(90, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(App::Create(deep, "1.2.3").status()));

  Config too_much = config_;
  too_much.proc_root = node_.tree().path("big");
  node_.tree().Write("big/meminfo",
                     "MemTotal: 4294967296 kB\nMemAvailable: 1 kB\n");
  too_much.queue_memory.node_memory_fraction = 0.5;
  const absl::Status refused = App::Create(too_much, "1.2.3").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("largest"));
}

// The largest that is not refused does arrive.
TEST_F(AppTest, TheKubeletTakesTheLargestListInAnyHealth) {
  node_.AddRxe("rxe0");
  config_.pools[0].rdma_hca_max = LargestUnitCount();
  config_.queue_memory.capacity_bytes = uint64_t{LargestUnitCount()} << 20;
  ASSERT_TRUE(kubelet_.Start().ok());
  const std::unique_ptr<App> app = Create();
  EXPECT_TRUE(Has(kHca, LargestUnitCount()));
  EXPECT_TRUE(Has(kMemory, LargestUnitCount()));
  node_.sysfs().SetPortState("rxe0", 1, 1);
  app->Rescan();
  EXPECT_TRUE(kubelet_.WaitFor(
      kHca,
      [](const auto& r) { return r.unhealthy.size() == LargestUnitCount(); },
      kLong));
  EXPECT_TRUE(kubelet_.resource(kHca)->connected);
}

TEST_F(AppTest, CheckConfigSaysWhatWouldBeAdvertised) {
  node_.AddRxe("rxe0");
  const absl::StatusOr<std::string> text = DescribeAdvertised(config_);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("rdma/hca"));
  EXPECT_THAT(*text, HasSubstr("1,000 units"));
  EXPECT_THAT(*text, HasSubstr("307 units"));
  EXPECT_THAT(*text, HasSubstr("rxe0"));
  EXPECT_THAT(*text, HasSubstr("port 1 ACTIVE Ethernet"));
  EXPECT_FALSE(std::filesystem::exists(node_.kubelet_root()));
  node_.BreakSysfs();
  EXPECT_FALSE(DescribeAdvertised(config_).ok());
}

TEST_F(AppTest, OverlapsAreRefusedWhereTheConfigurationSaysSo) {
  node_.AddRxe("rxe0");
  ASSERT_TRUE(kubelet_.Start().ok());
  PoolConfig other;
  other.resource_name = "other";
  config_.pools = {PoolConfig{}, other};
  config_.overlap = OverlapPolicy::kRefuse;
  for (const absl::Status& refused : {App::Create(config_, "1.2.3").status(),
                                      DescribeAdvertised(config_).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("rxe0 is selected by rdma/hca and rdma/other"));
  }
  config_.overlap = OverlapPolicy::kFirstWins;
  EXPECT_THAT(DescribeAdvertised(config_).value(),
              HasSubstr("rxe0 is selected by rdma/hca and rdma/other: the "
                        "first has it\n"));
  EXPECT_THAT(DescribeAdvertised(config_).value(),
              AllOf(HasSubstr("selected by another pool too, and not given to "
                              "it: rxe0 (rdma/hca); narrow"),
                    Not(HasSubstr("is selected\n"))));
  config_.overlap = OverlapPolicy::kAllow;
  EXPECT_THAT(DescribeAdvertised(config_).value(), HasSubstr("both have it\n"));
}

TEST_F(AppTest, CheckConfigSaysWhatIsOdd) {
  config_.form = ConfigForm::kSharedRdma;
  config_.warnings = {"c.json:1:2: x: unknown key"};
  config_.queue_memory.enabled = false;
  const std::string text = DescribeAdvertised(config_).value();
  EXPECT_THAT(text, HasSubstr("no usable RDMA device on this node\n"));
  EXPECT_THAT(text, HasSubstr("the shared RDMA device plugin's form"));
  EXPECT_THAT(text, HasSubstr("warning: c.json:1:2: x: unknown key\n"));
  config_.pools.clear();
  EXPECT_THAT(DescribeAdvertised(config_).value(),
              HasSubstr("now:\nnothing\n"));
}

}  // namespace
}  // namespace purser::plugin
