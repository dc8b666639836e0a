// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/selectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_sysfs.h"

namespace purser::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

using Names = std::vector<std::string>;

// A node with a device of every kind, read by discovery.
class SelectorsTest : public ::testing::Test {
 protected:
  SelectorsTest() {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    sysfs_.AddDevice(fakes::SysfsSiw("siw0", "eth1"));
    fakes::SysfsFakeDevice hca = fakes::SysfsMlx5TwoPorts("mlx5_0");
    hca.acpi_index = "3";
    sysfs_.AddDevice(hca);
    sysfs_.SetPortState("mlx5_0", 1, 1);
    for (const int index : {0, 1, 2}) {
      fakes::SysfsFakeDevice vf =
          fakes::SysfsMlx5VfOf("mlx5_vf" + std::to_string(index), index);
      vf.numa_node = 1;
      sysfs_.AddDevice(vf);
    }
    fakes::SysfsFakeDevice sf = fakes::SysfsMlx5Sf("mlx5_sf", "en3f0pf0sf88");
    sf.numa_node = 1;
    sysfs_.AddDevice(sf);
    fakes::SysfsFakeDevice bond = fakes::SysfsMlx5Vf("mlx5_bond_0", "ens5f0");
    bond.pci_address = "0000:5e:00.0";
    bond.ports[0].gids = {{0, "fe80::1", "RoCE v2", "bond0"}};
    sysfs_.AddDevice(bond);
    sysfs_.AddBond("bond0", {"ens5f0", "ens5f1"});
    sysfs_.AddDevice(fakes::SysfsEfa("efa_0"));
  }

  Names Taken(const Selectors& selectors, Reach reach = Reach::kEveryDevice,
              const std::set<std::string>& default_routes = {}) {
    if (devices_.empty()) devices_ = discovery_.Devices().value();
    const NodeNetwork network{discovery_.SeesFunctionNetdevs(), default_routes};
    Names taken;
    for (const rdma::SysfsDevice& device : devices_)
      if (Matches(selectors, reach, device, network))
        taken.push_back(device.name);
    return taken;
  }
  // What a pod's network namespace shows of netdevs: none of the functions'.
  void HideNetdevs() {
    for (const char* name : {"mlx5_0", "mlx5_vf0", "mlx5_vf1", "mlx5_vf2"})
      tree_.Remove(sysfs_.DirectoryOf(name) + "/../../net");
    tree_.Remove("sys/class/net");
  }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
  rdma::Discovery discovery_{sysfs_.sysfs_root(), sysfs_.dev_root()};
  std::vector<rdma::SysfsDevice> devices_;  // read at the first question
};

Selectors PfNames(const Names& texts) {
  Selectors selectors;
  for (const std::string& text : texts)
    selectors.pf_names.push_back(ParsePhysicalFunction(text).value());
  return selectors;
}

struct Case {
  const char* what;
  Selectors selectors;
  Names taken;
};

TEST_F(SelectorsTest, OrWithinAListAndBetweenLists) {
  const Names vfs = {"mlx5_vf0", "mlx5_vf1", "mlx5_vf2"};
  const Case cases[] = {
      {"name", {.devices = {"rxe0"}}, {"rxe0"}},
      {"glob", {.devices = {"mlx5_vf*"}}, {"mlx5_vf0", "mlx5_vf1", "mlx5_vf2"}},
      {"globs", {.devices = {"siw?", "rxe?"}}, {"rxe0", "siw0"}},
      {"a name is matched whole", {.devices = {"rxe"}}, {}},
      {"soft-RoCE", {.drivers = {"rdma_rxe"}}, {"rxe0"}},
      {"soft-iWARP", {.drivers = {"siw"}}, {"siw0"}},
      {"the driver's module",
       {.drivers = {"mlx5_core"}},
       {"mlx5_0", "mlx5_bond_0", "mlx5_sf", "mlx5_vf0", "mlx5_vf1",
        "mlx5_vf2"}},
      {"a sub-function's own driver",
       {.drivers = {"mlx5_core.sf"}},
       {"mlx5_sf"}},
      {"the netdev under soft-RoCE", {.if_names = {"eth0"}}, {"rxe0"}},
      {"InfiniBand netdev", {.if_names = {"ib0"}}, {"mlx5_0"}},
      {"the second port's netdev", {.if_names = {"ens1f1"}}, {"mlx5_0"}},
      {"a bond", {.if_names = {"bond0"}}, {"mlx5_bond_0"}},
      {"its first slave", {.if_names = {"ens5f0"}}, {"mlx5_bond_0"}},
      {"its second slave", {.if_names = {"ens5f1"}}, {"mlx5_bond_0"}},
      {"a sub-function's netdev", {.if_names = {"en3f0pf0sf88"}}, {"mlx5_sf"}},
      {"link", {.link_types = {"infiniband"}}, {"mlx5_0"}},
      {"vendor", {.vendors = {"1d0f"}}, {"efa_0"}},
      {"device id",
       {.device_ids = {"1018", "efa1"}},
       {"efa_0", "mlx5_bond_0", "mlx5_vf0", "mlx5_vf1", "mlx5_vf2"}},
      {"PCI address", {.pci_addresses = {"0000:3b:00.3"}}, {"mlx5_vf1"}},
      {"PCI addresses", {.pci_addresses = {"0000:5e:*"}}, {"mlx5_bond_0"}},
      {"ACPI index", {.acpi_indexes = {"3"}}, {"mlx5_0", "mlx5_sf"}},
      {"NUMA node",
       {.numa_nodes = {1}},
       {"mlx5_0", "mlx5_sf", "mlx5_vf0", "mlx5_vf1", "mlx5_vf2"}},
      {"no NUMA node", {.numa_nodes = {-1}}, {"efa_0", "rxe0", "siw0"}},
      {"a port that is down", {.port_states = {1}}, {"mlx5_0"}},
      {"virtual functions", {.kinds = {DeviceKind::kVirtual}}, vfs},
      {"sub-functions", {.kinds = {DeviceKind::kSub}}, {"mlx5_sf"}},
      {"bonds", {.kinds = {DeviceKind::kBond}}, {"mlx5_bond_0"}},
      {"soft devices", {.kinds = {DeviceKind::kSoft}}, {"rxe0", "siw0"}},
      {"physical functions",
       {.kinds = {DeviceKind::kPhysical}},
       {"efa_0", "mlx5_0"}},
      {"and", {.drivers = {"mlx5_core"}, .numa_nodes = {0}}, {"mlx5_bond_0"}},
      {"nothing", {.nothing = true}, {}},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(Taken(c.selectors), UnorderedElementsAreArray(c.taken))
        << c.what;
  }
  EXPECT_EQ(Taken({}).size(), 9u);
}

TEST_F(SelectorsTest, FunctionsOfAPhysicalFunction) {
  EXPECT_THAT(Taken(PfNames({"ens1f0"})),
              UnorderedElementsAreArray(Names{"mlx5_0", "mlx5_vf0", "mlx5_vf1",
                                              "mlx5_vf2", "mlx5_sf"}));
  EXPECT_THAT(Taken(PfNames({"ENS1F0#0-1"})),
              UnorderedElementsAreArray(Names{"mlx5_vf0", "mlx5_vf1"}));
  EXPECT_THAT(Taken(PfNames({"ens1f0#0,2"})),
              UnorderedElementsAreArray(Names{"mlx5_vf0", "mlx5_vf2"}));
  EXPECT_THAT(Taken(PfNames({"ens1f0#88"})),
              UnorderedElementsAreArray(Names{"mlx5_sf"}));
  EXPECT_THAT(Taken(PfNames({"ens1f0#7"})), UnorderedElementsAreArray(Names{}));
  EXPECT_THAT(Taken(PfNames({"ens9"})), UnorderedElementsAreArray(Names{}));
  Selectors root;
  root.root_devices = {ParsePhysicalFunction("0000:3b:00.0#1-2").value()};
  EXPECT_THAT(Taken(root),
              UnorderedElementsAreArray(Names{"mlx5_vf1", "mlx5_vf2"}));
}

// The shared RDMA plugin walks PCI functions and takes the first netdev of
// each. What it cannot select must be named.
TEST_F(SelectorsTest, AsTheSharedRdmaPlugin) {
  const Reach reach = Reach::kSharedRdmaPlugin;
  const Names mellanox = {"mlx5_0", "mlx5_bond_0", "mlx5_vf0", "mlx5_vf1",
                          "mlx5_vf2"};
  const Case cases[] = {
      {"vendors: no sub-function", {.vendors = {"15b3"}}, mellanox},
      {"drivers: the link's own name", {.drivers = {"mlx5_core"}}, mellanox},
      {"case counts", {.vendors = {"15B3"}}, {}},
      {"the first netdev of two ports", {.if_names = {"ens1f1"}}, {"mlx5_0"}},
      {"its link type, not the ports'", {.link_types = {"infiniband"}}, {}},
      {"link types: no soft device",
       {.link_types = {"ether"}},
       {"mlx5_0", "mlx5_bond_0", "mlx5_vf0", "mlx5_vf1", "mlx5_vf2"}},
      {"no netdev: no link type", {.link_types = {""}}, {"efa_0"}},
      {"no netdev: no name", {.if_names = {""}}, {"efa_0"}},
      {"a soft device by its netdev", {.if_names = {"eth0"}}, {"rxe0"}},
      {"a soft device by its driver", {.drivers = {"rdma_rxe"}}, {"rxe0"}},
      {"a sub-function by its netdev",
       {.if_names = {"en3f0pf0sf88"}},
       {"mlx5_sf"}},
      {"a bond by its name", {.if_names = {"bond0"}}, {"mlx5_bond_0"}},
      {"the second port by its netdev", {.if_names = {"ib0"}}, {"mlx5_0"}},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(Taken(c.selectors, reach), UnorderedElementsAreArray(c.taken))
        << c.what;
  }
}

TEST_F(SelectorsTest, OnlyNetworkFunctionsAreThePeersDevices) {
  fakes::SysfsFakeDevice other = fakes::SysfsMlx5Vf("mlx5_acc", "ens9");
  other.pci_address = "0000:70:00.0";
  other.pci_class = "0x120000";
  sysfs_.AddDevice(other);
  const Selectors by_address{.pci_addresses = {"0000:70:00.0"}};
  EXPECT_EQ(Taken(by_address).size(), 1u);
  EXPECT_EQ(Taken(by_address, Reach::kSharedRdmaPlugin).size(), 0u);
  EXPECT_EQ(Taken(by_address, Reach::kSriovNetDevice).size(), 0u);
}

// There the functions' netdevs cannot be seen, so that none is no answer.
TEST_F(SelectorsTest, InAPodsNetworkThePortsTellTheLink) {
  HideNetdevs();
  EXPECT_THAT(Taken({.link_types = {"infiniband"}}, Reach::kSharedRdmaPlugin),
              UnorderedElementsAreArray(Names{"mlx5_0"}));
  EXPECT_THAT(Taken({.if_names = {"ens1f0v1"}}, Reach::kSharedRdmaPlugin),
              UnorderedElementsAreArray(Names{"mlx5_vf1"}));
}

TEST_F(SelectorsTest, AsTheSriovPlugin) {
  EXPECT_THAT(
      Taken({}, Reach::kSriovNetDevice),
      UnorderedElementsAreArray(Names{"efa_0", "mlx5_0", "mlx5_bond_0",
                                      "mlx5_vf0", "mlx5_vf1", "mlx5_vf2"}));
  EXPECT_THAT(Taken({}, Reach::kSriovAuxNetDevice),
              UnorderedElementsAreArray(Names{"mlx5_sf"}));
  EXPECT_THAT(Taken({.aux_types = {"sf"}}, Reach::kSriovAuxNetDevice),
              UnorderedElementsAreArray(Names{"mlx5_sf"}));
  EXPECT_THAT(Taken({.aux_types = {"rdma"}}, Reach::kSriovAuxNetDevice),
              UnorderedElementsAreArray(Names{}));
  EXPECT_THAT(Taken({.pkeys = {"0xffff"}}, Reach::kSriovNetDevice),
              UnorderedElementsAreArray(Names{"mlx5_0"}));
}

TEST_F(SelectorsTest, TheSriovPluginLeavesOutWhatTheNodeUses) {
  tree_.Write("sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs", "3\n");
  EXPECT_THAT(
      Taken({.vendors = {"15b3"}}, Reach::kSriovNetDevice, {"ens1f0v2"}),
      UnorderedElementsAreArray(Names{"mlx5_bond_0", "mlx5_vf0", "mlx5_vf1"}));
}

TEST(PhysicalFunction, MalformedOnesShowTheForm) {
  for (const char* text : {"", "#1", "a#", "a#x", "a#1-", "a#-1", "a#3-1",
                           "a#1,,2", "a#1#2", "a#1-2-3"}) {
    const auto parsed = ParsePhysicalFunction(text);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("ens1f0#0-3,7"));
  }
  const auto good = ParsePhysicalFunction("ens1f0#0-3,7");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->name, "ens1f0");
  ASSERT_EQ(good->ranges.size(), 2u);
  EXPECT_EQ(good->ranges[1].first, 7);
  EXPECT_EQ(good->ranges[1].last, 7);
}

}  // namespace
}  // namespace purser::plugin
