// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/config/config.h"
#include "plugin/config/unit_limit.h"
#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Faults(std::string_view text) {
  const absl::StatusOr<Config> config = ParseConfig("c.yaml", text);
  EXPECT_FALSE(config.ok()) << text;
  EXPECT_TRUE(config.ok() || absl::IsInvalidArgument(config.status()));
  return std::string(config.status().message());
}

TEST(Config, DefaultsNeedNoFile) {
  const Config config;
  ASSERT_EQ(config.pools.size(), 1u);
  EXPECT_EQ(config.pools[0].full_name(), "rdma/hca");
  EXPECT_EQ(config.pools[0].rdma_hca_max, 1000u);
  EXPECT_TRUE(config.queue_memory.enabled);
  EXPECT_EQ(config.device_plugins_dir(), "/var/lib/kubelet/device-plugins");
}

TEST(Config, AFileThatSaysNothingKeepsTheDefaults) {
  const absl::StatusOr<Config> config = ParseConfig("c.yaml", "version: v1\n");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->pools.size(), 1u);
  EXPECT_EQ(config->metrics_address, ":9836");
  EXPECT_FALSE(config->queue_memory.capacity_bytes);
}

TEST(Config, ReadsEveryKey) {
  const absl::StatusOr<Config> config = ParseConfig("c.yaml", R"(
version: v1
kubeletRootDir: /var/lib/k0s/kubelet
metricsAddress: 127.0.0.1:9000
rescanInterval: 2s
healthDebounce: 300ms
logLevel: debug
registration: plugins-registry
cdi: {enabled: true, directory: /etc/cdi}
resources:
  overlap: allow
  pools:
    - resourceName: hca-fast
      resourcePrefix: example.com
      rdmaHcaMax: 63
      unit: share
      selectors:
        devices: ["mlx5_*"]
        drivers: [mlx5_core]
        ifNames: [ib0]
        linkTypes: [ether, infiniband]
        vendors: ["15b3"]
        deviceIDs: ["1017"]
        pciAddresses: ["0000:3b:*"]
        pfNames: ["ens1f0#0-3,7"]
        numaNodes: [0, -1]
        linkStates: [active, down]
        kinds: [pf, vf, sf, bond, soft]
        isRdma: true
      exclude:
        - devices: [mlx5_9]
        - kinds: [soft]
      healthCheck: false
      mounts:
        - hostPath: /opt/a
          containerPath: /opt/b
          readOnly: true
    - resourceName: rest
    - resourceName: vfs
      unit: device
      allocate: {placement: packed, topology: false, umad: false, issm: true, rdmaCm: false}
    - resourceName: slices
      unit: deviceShare
      rdmaHcaMax: 8
    - resourceName: counted
      rdmaHcaMax: auto
  queueMemory:
    capacity: 4Gi
    unit: 16Mi
  queuePairs:
    perDevice: 131072
    reserve: 1000
    unit: 64
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->device_plugins_dir(),
            "/var/lib/k0s/kubelet/device-plugins");
  EXPECT_EQ(config->metrics_address, "127.0.0.1:9000");
  EXPECT_EQ(config->rescan_interval, std::chrono::seconds(2));
  EXPECT_EQ(config->log_level, base::LogLevel::kDebug);
  EXPECT_EQ(config->overlap, OverlapPolicy::kAllow);
  EXPECT_EQ(config->form, ConfigForm::kNative);
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_EQ(config->registration, RegistrationMode::kPluginsRegistry);
  EXPECT_TRUE(config->cdi);
  EXPECT_EQ(config->cdi_dir, "/etc/cdi");
  ASSERT_EQ(config->pools.size(), 5u);
  const PoolConfig& pool = config->pools[0];
  EXPECT_EQ(pool.full_name(), "example.com/hca-fast");
  EXPECT_EQ(pool.rdma_hca_max, 63u);
  ASSERT_EQ(pool.selectors.size(), 1u);
  const Selectors& selectors = pool.selectors[0];
  EXPECT_THAT(selectors.devices, ElementsAre("mlx5_*"));
  EXPECT_THAT(selectors.drivers, ElementsAre("mlx5_core"));
  EXPECT_THAT(selectors.if_names, ElementsAre("ib0"));
  EXPECT_THAT(selectors.link_types, ElementsAre("ether", "infiniband"));
  EXPECT_THAT(selectors.vendors, ElementsAre("15b3"));
  EXPECT_THAT(selectors.device_ids, ElementsAre("1017"));
  EXPECT_THAT(selectors.pci_addresses, ElementsAre("0000:3b:*"));
  EXPECT_THAT(selectors.pf_names,
              ElementsAre(*ParsePhysicalFunction("ens1f0#0-3,7")));
  EXPECT_THAT(selectors.numa_nodes, ElementsAre(0, -1));
  EXPECT_THAT(selectors.port_states, ElementsAre(4, 1));
  EXPECT_THAT(
      selectors.kinds,
      ElementsAre(DeviceKind::kPhysical, DeviceKind::kVirtual, DeviceKind::kSub,
                  DeviceKind::kBond, DeviceKind::kSoft));
  ASSERT_EQ(pool.exclude.size(), 2u);
  EXPECT_THAT(pool.exclude[0].devices, ElementsAre("mlx5_9"));
  EXPECT_FALSE(pool.checks_health());
  EXPECT_EQ(config->pools[1].health_check, std::nullopt);
  EXPECT_EQ(config->health_debounce, std::chrono::milliseconds(300));
  ASSERT_EQ(pool.mounts.size(), 1u);
  EXPECT_EQ(pool.mounts[0].host_path, "/opt/a");
  EXPECT_EQ(pool.mounts[0].container_path, "/opt/b");
  EXPECT_TRUE(pool.mounts[0].read_only);
  EXPECT_EQ(config->pools[1].full_name(), "rdma/rest");
  EXPECT_EQ(config->pools[2].unit, PoolUnit::kDevice);
  const AllocateOptions& allocate = config->pools[2].allocate;
  EXPECT_EQ(allocate.placement, Placement::kPacked);
  EXPECT_FALSE(allocate.topology || allocate.umad || allocate.rdma_cm);
  EXPECT_TRUE(allocate.issm);
  EXPECT_EQ(config->pools[3].unit, PoolUnit::kDeviceShare);
  EXPECT_EQ(config->pools[3].rdma_hca_max, 8u);
  EXPECT_EQ(config->pools[3].allocate, AllocateOptions{});
  EXPECT_EQ(config->pools[4].rdma_hca_max, std::nullopt);
  EXPECT_EQ(config->queue_memory.capacity_bytes, uint64_t{4} << 30);
  EXPECT_EQ(config->queue_memory.full_name(), "rdma/wqe-16mib");
  EXPECT_TRUE(config->queue_pairs.enabled);
  EXPECT_EQ(config->queue_pairs.per_device, 131'072u);
  EXPECT_EQ(config->queue_pairs.reserve, 1000u);
  EXPECT_EQ(config->queue_pairs.full_name(), "rdma/qp-64");
}

TEST(Config, FractionOfNodeMemory) {
  const absl::StatusOr<Config> config = ParseConfig(
      "c.yaml",
      "version: v1\nresources: {queueMemory: {nodeMemoryFraction: 25%}}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_DOUBLE_EQ(config->queue_memory.node_memory_fraction.value(), 0.25);
}

TEST(Config, ACapacityMayBeAShare) {
  const absl::StatusOr<Config> config = ParseConfig(
      "c.yaml", "version: v1\nresources: {queueMemory: {capacity: 25%}}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_DOUBLE_EQ(config->queue_memory.node_memory_fraction.value(), 0.25);
  EXPECT_FALSE(config->queue_memory.capacity_bytes);
}

TEST(Config, QueuePairsAreOffUnlessGiven) {
  const auto enabled = [](const std::string& resources) {
    const absl::StatusOr<Config> config =
        ParseConfig("c.yaml", "version: v1\nresources: {" + resources + "}\n");
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() && config->queue_pairs.enabled;
  };
  EXPECT_FALSE(enabled(""));
  EXPECT_TRUE(enabled("queuePairs: {capacity: 1000}"));
  EXPECT_TRUE(enabled("queuePairs: {enabled: true}"));
  EXPECT_FALSE(enabled("queuePairs: {capacity: 1000, enabled: false}"));
}

TEST(Config, TellsWhetherTheNumberOfSharesWasAskedFor) {
  const auto config = ParseConfig(
      "c.yaml",
      "version: v1\nresources: {pools: [{resourceName: a, rdmaHcaMax: 1000}, "
      "{resourceName: b}, {resourceName: c, rdmaHcaMax: auto}]}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->pools[0].rdma_hca_max_given);
  EXPECT_FALSE(config->pools[1].rdma_hca_max_given);
  EXPECT_FALSE(config->pools[2].rdma_hca_max_given);
}

TEST(Config, SelectorsAreAMapOrAListOfMaps) {
  const absl::StatusOr<Config> config =
      ParseConfig("c.yaml",
                  "version: v1\nresources: {pools: [{resourceName: a, "
                  "selectors: [{devices: [a]}, {devices: [b]}], exclude: "
                  "{devices: [c]}}, {resourceName: b}]}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->pools[0].selectors.size(), 2u);
  EXPECT_EQ(config->pools[0].exclude.size(), 1u);
  EXPECT_THAT(config->pools[1].selectors, IsEmpty());
}

TEST(Config, PartsCanBeSwitchedOffButNotAll) {
  EXPECT_TRUE(
      ParseConfig("c.yaml", "version: v1\nresources: {pools: []}").ok());
  EXPECT_THAT(
      Faults("version: v1\nresources: {pools: [], queueMemory: {enabled: "
             "false}}"),
      HasSubstr("nothing to advertise"));
}

TEST(Config, AllFaultsAtOnceWithLineColumnAndSuggestion) {
  const std::string faults = Faults(
      "version: v1\n"
      "resorces: {}\n"
      "resources:\n"
      "  pools:\n"
      "    - resourceName: a/b\n"
      "      rdmaHcaMax: -5\n"
      "      selectors:\n"
      "        vendor: [\"15b3\"]\n"
      "        vendors: [\"0x15B3\"]\n"
      "        linkTypes: [roce]\n"
      "  queueMemory:\n"
      "    capacity: 64Mib\n");
  EXPECT_THAT(faults, HasSubstr("c.yaml:2:1"));
  EXPECT_THAT(faults, HasSubstr("did you mean \"resources\"?"));
  EXPECT_THAT(faults, HasSubstr("c.yaml:5:"));
  EXPECT_THAT(faults, HasSubstr("c.yaml:6:"));
  EXPECT_THAT(faults, HasSubstr("did you mean \"vendors\"?"));
  EXPECT_THAT(faults, HasSubstr("0x15B3"));
  EXPECT_THAT(faults, HasSubstr("\"roce\" is neither ether nor infiniband"));
  EXPECT_THAT(faults, HasSubstr("c.yaml:12:"));
}

struct BadCase {
  const char* text;
  const char* said;
};

TEST(Config, RefusesWhatCannotBeMeant) {
  const BadCase cases[] = {
      {"resources: {}", "version"},
      {"version: v2", "this is v1"},
      {"version: v1\nkubeletRootDir: kubelet", "no absolute path"},
      {"version: v1\nrescanInterval: 1ms", "below 100ms"},
      {"version: v1\nhealthDebounce: 2m", "above 1m"},
      {"version: v1\nlogLevel: loud", "loud"},
      {"version: v1\nmetricsAddress: foo", "metricsAddress: address \"foo\""},
      {"version: v1\nmetricsAddress: 5", "is malformed"},
      {"version: v1\nmetricsAddress: \"\"", "is malformed"},
      {"version: v1\nresources: {pools: [{resourceName: a, resourcePrefix: "
       "requests.example.com}]}",
       "belongs to Kubernetes"},
      {"version: v1\nresources: {pools: [{resourceName: a, mounts: "
       "[{hostPath: /a, containerPath: /c}, {hostPath: /b, containerPath: "
       "/c}]}]}",
       "containerPath: another mount of the pool has it"},
      {"version: v1\nresources: {pools: [{}]}", "every pool needs a name"},
      {"version: v1\nresources: {pools: [{resourceName: a}, {resourceName: "
       "a}]}",
       "rdma/a is the name of two pools"},
      {"version: v1\nresources: {pools: [{resourceName: a-b}, {resourceName: "
       "a_b}]}",
       "PURSER_POOL_A_B_DEVICES, PURSER_POOL_A_B_GID_INDEX; rename one"},
      {"version: v1\nresources: {pools: [{resourceName: wqe-mib}]}",
       "is a name for the queue memory"},
      {"version: v1\nresources: {pools: [{resourceName: a, resourcePrefix: "
       "x.kubernetes.io}]}",
       "belongs to Kubernetes"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: "
       "{devices: [\"\"]}}]}",
       "matches nothing"},
      {"version: v1\nresources: {pools: [{resourceName: a, mounts: "
       "[{hostPath: a, containerPath: /b}]}]}",
       "no absolute path"},
      {"version: v1\nresources: {pools: [{resourceName: a, mounts: "
       "[{hostPath: /a}]}]}",
       "containerPath: is missing"},
      {"version: v1\nresources: {queueMemory: {capacity: 1Ki}}",
       "less than 1Mi"},
      {"version: v1\nresources: {queueMemory: {capacity: 1Gi, "
       "nodeMemoryFraction: 0.5}}",
       "keep one"},
      {"version: v1\nresources: {queueMemory: {nodeMemoryFraction: 150%}}",
       "nodeMemoryFraction"},
      {"version: v1\nresources: {queueMemory: {capacity: 1Gi, unit: 1500Ki}}",
       "whole MiB from 1Mi to 64Gi"},
      {"version: v1\nresources: {queueMemory: {capacity: 15Mi, unit: 16Mi}}",
       "less than 16Mi"},
      {"version: v1\nresources: {queuePairs: {capacity: 1000000}}",
       "as rdma/qp-8, set unit: 8"},
      {"version: v1\nresources: {queuePairs: {capacity: 10, perDevice: 10}}",
       "keep one"},
      {"version: v1\nresources: {queuePairs: {reserve: -1}}", "reserve"},
      {"version: v1\nregistration: both", "none of auto, kubelet-socket"},
      {"version: v1\ncdi: {directory: run/cdi}", "no absolute path"},
      {"version: v1\nresources: {pools: [{resourceName: a, unit: port}]}",
       "none of share, deviceShare, device"},
      {"version: v1\nresources: {pools: [{resourceName: a, allocate: "
       "{placement: near}}]}",
       "neither spread nor packed"},
      {"version: v1\nresources: {queuePairs: {unit: 0}}", "unit"},
      {"version: v1\nresources: {overlap: maybe}",
       "\"maybe\" is none of first, allow, refuse"},
      {"version: v1\nresources: {overlap: first, allowOverlap: true}",
       "keep that"},
      {"version: v1\nresources: {pools: [{resourceName: qp-64}]}",
       "is a name for the queue pairs"},
      {"version: v1\nresources: {pools: [{resourceName: wqe-16mib}]}",
       "is a name for the queue memory"},
      {"version: v1\nresources: {pools: [{resourceName: a, unit: nic}]}",
       "none of share, deviceShare, device"},
      {"version: v1\nresources: {pools: [{resourceName: a, unit: device, "
       "rdmaHcaMax: 5}]}",
       "as many as there are devices"},
      {"version: v1\nresources: {pools: [{resourceName: a, rdmaHcaMax: "
       "most}]}",
       "a whole number from 0 to"},
      {"version: v1\nresources: {pools: [{resourceName: a, exclude: {}}]}",
       "excludes every device"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: "
       "{pfNames: [\"ens1#x\"]}}]}",
       "names no function"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: "
       "{numaNodes: [-2]}}]}",
       "is no NUMA node"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: "
       "{kinds: [nic]}}]}",
       "\"nic\" is none of bond, pf, sf, soft, vf"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: "
       "{linkStates: [up]}}]}",
       "\"up\" is none of active, armed, down, init"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: "
       "{isRdma: false}}]}",
       "only RDMA devices"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: "
       "{devices: [\"*a*b*c*d*\"]}}]}",
       "more than 4 stars"},
      {"version: v1\nresources: {pools: [{resourceName: a, selectors: x}]}",
       "must be a list of maps"},
      {"version: v1\nresources: [", "c.yaml:"},
      {"- version", "c.yaml:"},
  };
  for (const BadCase& c : cases) EXPECT_THAT(Faults(c.text), HasSubstr(c.said));
}

TEST(Config, RefusesMoreUnitsThanTheKubeletTakesAndNamesTheLargest) {
  const std::string fits = std::to_string(LargestUnitCount());
  const std::string faults =
      Faults("version: v1\nresources: {queueMemory: {capacity: 1Ti}}");
  EXPECT_THAT(faults, HasSubstr("1,048,576 units"));
  EXPECT_THAT(faults, HasSubstr("4,194,304 bytes"));
  EXPECT_THAT(faults, HasSubstr(fits + "Mi"));
  EXPECT_TRUE(ParseConfig("c.yaml",
                          "version: v1\nresources: {queueMemory: {capacity: " +
                              fits + "Mi}}")
                  .ok());
  EXPECT_THAT(Faults("version: v1\nresources: {pools: [{resourceName: a, "
                     "rdmaHcaMax: 1000000}]}"),
              HasSubstr(fits));
}

TEST(Config, LoadSaysWhichFile) {
  fakes::FileTree tree;
  tree.Write("good.yaml", "version: v1\n");
  tree.Write("bad.yaml", "version: v1\nx: 1\n");
  EXPECT_TRUE(LoadConfig(tree.path("good.yaml")).ok());
  EXPECT_THAT(std::string(LoadConfig(tree.path("bad.yaml")).status().message()),
              HasSubstr(tree.path("bad.yaml") + ":2:1"));
  EXPECT_EQ(LoadConfig(tree.path("none.yaml")).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace purser::plugin
