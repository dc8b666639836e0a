// SPDX-License-Identifier: Apache-2.0
//
// The plugin takes another configuration into use while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "plugin/app.h"
#include "plugin/pool_resource.h"
#include "spdlog/fmt/fmt.h"
#include "tests/fakes/fake_pod_resources.h"
#include "tests/fakes/kubelet.h"
#include "tests/unit/plugin/http_get.h"
#include "tests/unit/plugin/rdma_node.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHca = "rdma/hca";
constexpr const char* kMemory = "rdma/wqe-mib";
// Only a failing test waits that long.
constexpr auto kLong = 60s;

class ReloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    node_.AddRxe("rxe0");
    ASSERT_TRUE(kubelet_.Start().ok());
  }
  // The file's text; `pools` as YAML's flow.
  void Write(const std::string& pools, const std::string& more = "") {
    node_.tree().Write(
        "config.yaml",
        fmt::format("version: v1\nresources:\n  pools: [{}]\n{}", pools, more));
  }
  // As main does.
  void Start() {
    Flags flags;
    flags.config = node_.tree().path("config.yaml");
    flags.sysfs_root = node_.sysfs_root();
    flags.dev_root = node_.dev_root();
    flags.kubelet_root_dir = node_.kubelet_root();
    flags.metrics_address = "127.0.0.1:0";
    flags.node_view.enabled = false;  // it reads this machine
    absl::StatusOr<std::unique_ptr<ConfigFile>> file =
        ConfigFile::Open(flags, {.settle = 0ms});
    ASSERT_TRUE(file.ok()) << file.status();
    Config config = (*file)->first();
    config.proc_root = node_.proc_root();
    absl::StatusOr<std::unique_ptr<App>> app =
        App::Create(config, "1.2.3", *std::move(file));
    ASSERT_TRUE(app.ok()) << app.status();
    app_ = *std::move(app);
  }
  // It has to have the same text twice.
  void Reload() {
    app_->LookAtConfig(/*anyway=*/true);
    app_->LookAtConfig(/*anyway=*/true);
  }
  bool Has(const char* resource, size_t units) {
    return kubelet_.WaitFor(
        resource, [&](const auto& r) { return r.healthy.size() == units; },
        kLong);
  }
  // Its socket is closed: the kubelet lost it, and will drop it.
  bool Withdrawn(const char* resource) {
    return kubelet_.WaitFor(
        resource, [](const auto& r) { return !r.connected; }, kLong);
  }
  std::string Metrics() { return HttpGet(app_->metrics_port(), "/metrics"); }
  std::string Readyz() { return HttpGet(app_->metrics_port(), "/readyz"); }

  RdmaNode node_;
  fakes::Kubelet kubelet_{node_.kubelet_root()};
  std::unique_ptr<App> app_;
};

TEST_F(ReloadTest, AnotherCountIsANewListAndNothingElse) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  const std::string endpoint = kubelet_.resource(kHca)->endpoint;
  ASSERT_TRUE(kubelet_.Allocate("pod", {{kHca, 4}}).ok());
  Write("{resourceName: hca, rdmaHcaMax: 20}");
  Reload();
  ASSERT_TRUE(Has(kHca, 20));
  EXPECT_TRUE(kubelet_.Readmit("pod").ok());
  EXPECT_EQ(kubelet_.resource(kHca)->registrations, 1);
  EXPECT_EQ(kubelet_.resource(kHca)->endpoint, endpoint);
  EXPECT_THAT(Metrics(), HasSubstr("config_loads_total{result=\"loaded\"} 2"));
  EXPECT_THAT(Metrics(), HasSubstr("refreshes_total{cause=\"config\"} 1"));
}

TEST_F(ReloadTest, TheSameTextChangesNothing) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  Reload();
  EXPECT_THAT(Metrics(), HasSubstr("config_loads_total{result=\"loaded\"} 1"));
  EXPECT_THAT(Metrics(), HasSubstr("config_valid 1"));
}

TEST_F(ReloadTest, AllocateGivesWhatTheNewConfigurationSays) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  Write(
      "{resourceName: hca, rdmaHcaMax: 10, allocate: {rdmaCm: false}, "
      "mounts: [{hostPath: /a, containerPath: /b}]}");
  Reload();
  const auto pod = kubelet_.Allocate("pod", {{kHca, 1}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->mounts.size(), 1u);
  EXPECT_EQ(pod->devices.size(), 1u);
}

TEST_F(ReloadTest, ResourcesComeAndGo) {
  Write("{resourceName: hca}, {resourceName: old}");
  Start();
  ASSERT_TRUE(Has(kHca, 1000));
  ASSERT_TRUE(kubelet_.WaitFor(
      "rdma/old", [](const auto& r) { return r.connected; }, kLong));
  const std::string old = kubelet_.resource("rdma/old")->endpoint;
  Write("{resourceName: new, rdmaHcaMax: 5}, {resourceName: hca}",
        "  overlap: allow\n");
  Reload();
  ASSERT_TRUE(Has("rdma/new", 5));
  ASSERT_TRUE(Has(kHca, 1000));
  ASSERT_TRUE(Withdrawn("rdma/old"));
  EXPECT_FALSE(std::filesystem::exists(kubelet_.device_plugins_dir() / old));
  EXPECT_EQ(kubelet_.resource(kHca)->registrations, 1);
  EXPECT_THAT(Metrics(), HasSubstr("capacity{resource=\"rdma/new\"} 5"));
  EXPECT_THAT(Metrics(), Not(HasSubstr("rdma/old")));
  EXPECT_THAT(Readyz(), Not(HasSubstr("rdma/old")));
  // And back: a socket of a name that it never had.
  Write("{resourceName: hca}, {resourceName: old}");
  Reload();
  ASSERT_TRUE(kubelet_.WaitFor(
      "rdma/old",
      [&](const auto& r) { return r.connected && r.endpoint != old; }, kLong));
  ASSERT_TRUE(Withdrawn("rdma/new"));
}

TEST_F(ReloadTest, QueueMemoryMayBeSwitchedOffAndOn) {
  Write("{resourceName: hca}");
  Start();
  ASSERT_TRUE(Has(kMemory, 307));
  Write("{resourceName: hca}", "  queueMemory: {enabled: false}\n");
  Reload();
  ASSERT_TRUE(Withdrawn(kMemory));
  Write("{resourceName: hca}", "  queueMemory: {capacity: 64Mi}\n");
  Reload();
  EXPECT_TRUE(Has(kMemory, 64));
}

// The kubelet asks for a preference only where registration said there is one.
TEST_F(ReloadTest, AnotherKindOfUnitIsRegisteredAnew) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  Write("{resourceName: hca, rdmaHcaMax: 10, unit: deviceShare}");
  Reload();
  ASSERT_TRUE(kubelet_.WaitFor(
      kHca,
      [](const auto& r) {
        return r.connected && r.healthy.contains("rxe0-9") &&
               r.registrations == 2;
      },
      kLong));
  EXPECT_TRUE(
      kubelet_.endpoint(kHca)->options().get_preferred_allocation_available());
}

TEST_F(ReloadTest, ABadConfigurationChangesNothingAndIsSaid) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  ASSERT_TRUE(Has(kMemory, 307));
  const std::string loaded = "config_loaded_timestamp_seconds ";
  const std::string before = Metrics().substr(Metrics().find(loaded), 60);
  for (const char* bad :
       {"{resourceName: hca, rdmaHcaMaxx: 20}", "{", "{resourceName: wqe-mib}",
        // It does not fit this node.
        "{resourceName: hca}, {resourceName: b}"}) {
    Write(bad, "  overlap: refuse\n");
    Reload();
    EXPECT_THAT(Metrics(), HasSubstr("config_valid 0")) << bad;
    EXPECT_THAT(Readyz(), HasSubstr("not valid")) << bad;
    EXPECT_THAT(Readyz(), HasSubstr("rdma/hca: ready, 10 units"));
    app_->Rescan();
  }
  EXPECT_THAT(Metrics(), HasSubstr(before));
  EXPECT_THAT(Metrics(), HasSubstr("config_loads_total{result=\"refused\"} 4"));
  EXPECT_EQ(kubelet_.resource(kHca)->healthy.size(), 10u);
  EXPECT_EQ(kubelet_.resource(kHca)->registrations, 1);
  Write("{resourceName: hca, rdmaHcaMax: 20}");
  Reload();
  EXPECT_TRUE(Has(kHca, 20));
  EXPECT_THAT(Metrics(), HasSubstr("config_valid 1"));
  EXPECT_THAT(Readyz(), Not(HasSubstr("not valid")));
}

TEST_F(ReloadTest, MoreUnitsThanTheKubeletTakesAreRefused) {
  Write("{resourceName: hca}", "  queueMemory: {capacity: 64Mi}\n");
  Start();
  ASSERT_TRUE(Has(kMemory, 64));
  Write("{resourceName: hca}", "  queueMemory: {capacity: 1Ti}\n");
  Reload();
  EXPECT_THAT(Readyz(), HasSubstr("queueMemory"));
  EXPECT_EQ(kubelet_.resource(kMemory)->healthy.size(), 64u);
}

TEST_F(ReloadTest, AFileThatIsGoneChangesNothingUntilItIsBack) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  node_.tree().Remove("config.yaml");
  Reload();
  EXPECT_THAT(Metrics(), HasSubstr("config_valid 0"));
  app_->Rescan();
  EXPECT_EQ(kubelet_.resource(kHca)->healthy.size(), 10u);
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Reload();
  EXPECT_THAT(Metrics(), HasSubstr("config_valid 1"));
}

TEST_F(ReloadTest, SomeKeysWaitForTheNextStart) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  testing::internal::CaptureStderr();
  Write("{resourceName: hca, rdmaHcaMax: 20}",
        "registration: plugins-registry\ncdi: {enabled: true, directory: "
        "/nosuch/cdi}\n");
  Reload();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("key=registration"));
  EXPECT_THAT(log, HasSubstr("key=cdi.enabled"));
  EXPECT_THAT(log, HasSubstr("key=cdi.directory"));
  auto needed = [this](const std::string& key) {
    const std::string metric = "restart_needed{key=\"" + key + "\"} ";
    return Metrics().substr(Metrics().find(metric) + metric.size(), 1);
  };
  EXPECT_EQ(needed("registration"), "1");
  EXPECT_EQ(needed("cdi.enabled"), "1");
  EXPECT_EQ(needed("cdi.directory"), "1");
  EXPECT_EQ(needed("kubeletRootDir"), "0");
  EXPECT_EQ(needed("metricsAddress"), "0");
  EXPECT_TRUE(Has(kHca, 20));
  const auto pod = kubelet_.Allocate("pod", {{kHca, 1}});
  ASSERT_TRUE(pod.ok());
  EXPECT_TRUE(pod->cdi_devices.empty());
  Write("{resourceName: hca, rdmaHcaMax: 20}");
  Reload();
  EXPECT_THAT(Metrics(), Not(HasSubstr("key=\"registration\"} 1")));
}

// A pod that was given names of a pool that is no more may be started again.
TEST_F(ReloadTest, CdiSpecificationsInUseStay) {
  const std::string cdi = fmt::format("cdi: {{enabled: true, directory: {}}}\n",
                                      node_.tree().path("cdi"));
  auto files = [this] {
    std::set<std::string> found;
    for (const auto& entry :
         std::filesystem::directory_iterator(node_.tree().path("cdi")))
      found.insert(entry.path().filename());
    return found;
  };
  auto kubelet = std::make_unique<fakes::FakePodResources>(
      node_.kubelet_root() + "/pod-resources/kubelet.sock");
  kubelet->Give("default", "pod", "app", "rdma/hca", 1);
  Write("{resourceName: hca}, {resourceName: unused}",
        "  overlap: allow\n" + cdi);
  Start();
  ASSERT_EQ(files().size(), 2u);
  Write("{resourceName: new}", cdi);
  Reload();
  EXPECT_THAT(files(), testing::ElementsAre(HasSubstr("rdma_hca"),
                                            HasSubstr("rdma_new")));
  // Nor does the end of the plugin take it away.
  app_->Stop();
  EXPECT_THAT(files(), testing::ElementsAre(HasSubstr("rdma_hca")));
}

TEST_F(ReloadTest, AResourceOfAnotherInstallationIsRefused) {
  Write("{resourceName: hca, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  auto pool = PoolResource(PoolConfig{.resource_name = "theirs"});
  ResourceServer theirs(pool, {"another", 1}, [] {});
  ASSERT_TRUE(theirs
                  .Bind(kubelet_.device_plugins_dir().string(),
                        RegistrationWay::kKubeletSocket)
                  .ok());
  Write("{resourceName: hca, rdmaHcaMax: 20}, {resourceName: theirs}",
        "  overlap: allow\n");
  Reload();
  EXPECT_THAT(Metrics(), HasSubstr("config_valid 0"));
  EXPECT_THAT(Readyz(), HasSubstr("another device plugin serves rdma/theirs"));
  EXPECT_EQ(kubelet_.resource(kHca)->healthy.size(), 10u);
  EXPECT_FALSE(kubelet_.resource("rdma/theirs"));
  Reload();
  EXPECT_THAT(Metrics(), HasSubstr("config_loads_total{result=\"refused\"} 1"));
  // Once that has gone, the same text will do.
  theirs.Stop(std::chrono::system_clock::now() + 1s);
  Reload();
  EXPECT_TRUE(Has(kHca, 20));
  EXPECT_TRUE(Has("rdma/theirs", 1000));
  EXPECT_THAT(Metrics(), HasSubstr("config_valid 1"));
}

TEST_F(ReloadTest, MoreSharesOfDevicesThanTheKubeletTakesAreRefused) {
  Write("{resourceName: hca, unit: deviceShare, rdmaHcaMax: 10}");
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  Write("{resourceName: hca, unit: deviceShare, rdmaHcaMax: 205000}");
  Reload();
  EXPECT_THAT(Readyz(), HasSubstr("the largest rdmaHcaMax that fits is 1"));
  EXPECT_EQ(kubelet_.resource(kHca)->healthy.size(), 10u);
}

TEST_F(ReloadTest, CdiSpecificationsFollow) {
  const std::string cdi = fmt::format("cdi: {{enabled: true, directory: {}}}\n",
                                      node_.tree().path("cdi"));
  Write("{resourceName: hca, rdmaHcaMax: 10}", cdi);
  Start();
  ASSERT_TRUE(Has(kHca, 10));
  Write("{resourceName: new, rdmaHcaMax: 10}", cdi);
  Reload();
  ASSERT_TRUE(Has("rdma/new", 10));
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(node_.tree().path("cdi")))
    files.push_back(entry.path().filename());
  // The other one may be in use: the kubelet cannot be asked here.
  EXPECT_THAT(
      files, testing::UnorderedElementsAre(HasSubstr("new"), HasSubstr("hca")));
  const auto pod = kubelet_.Allocate("pod", {{"rdma/new", 1}});
  ASSERT_TRUE(pod.ok());
  EXPECT_THAT(pod->cdi_devices,
              testing::ElementsAre("purser.dev/rdma_new=rxe0"));
}

}  // namespace
}  // namespace purser::plugin
