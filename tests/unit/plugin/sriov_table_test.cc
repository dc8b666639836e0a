// SPDX-License-Identifier: Apache-2.0
//
// The SR-IOV network device plugin's configuration files, side by side: what
// that plugin advertises of its RDMA devices on the node of peer_node.h, by its
// rules, and what Purser does. Where a pool has no device that plugin serves no
// resource, and Purser one of 0 units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "tests/unit/plugin/peer_node.h"

namespace purser::plugin {
namespace {

constexpr const char* kRefused = "refused";

struct Row {
  const char* what;
  std::string config;
  std::string advertised;  // by both, or kRefused
  const char* warning;     // or the reason of the refusal; "": none
};

std::string One(const std::string& fields) {
  return "{\"resourceList\": [{\"resourceName\": \"a\", " + fields + "}]}";
}
// RDMA devices that the selectors take.
std::string Selecting(const std::string& selectors) {
  return One("\"selectors\": {\"isRdma\": true" + selectors + "}");
}

std::vector<Row> Forms() {
  return {
      {"README's example",
       R"({"resourceList": [{"resourceName": "mlnx_sriov_rdma",
           "resourcePrefix": "mellanox.com", "selectors": {
           "vendors": ["15b3"], "devices": ["101e"],
           "drivers": ["mlx5_core"], "isRdma": true}}]})",
       "mellanox.com/mlnx_sriov_rdma=4", ""},
      {"the flag's prefix", Selecting(R"(, "devices": ["101e"])"),
       "intel.com/a=4", ""},
      {"IsRdma, and other keys in other cases",
       R"({"ResourceList": [{"ResourceName": "a", "Selectors":
           {"IsRdma": true, "Devices": ["101e"]}}]})",
       "intel.com/a=4", ""},
      {"selectors in a list: any of them",
       One(R"("selectors": [{"isRdma": true, "pfNames": ["ens3f0#0"]},
                            {"isRdma": true, "pfNames": ["ens3f0#3"]}])"),
       "intel.com/a=2", ""},
      {"an empty list of selectors", One(R"("selectors": [])"), "",
       "select nothing"},
      {"no selectors, which ends that plugin", One(R"("deviceType": "")"), "",
       "select nothing"},
      {"selectors that cannot be read drop the pool",
       R"({"resourceList": [
           {"resourceName": "a", "selectors": {"isRdma": "true"}},
           {"resourceName": "b", "selectors": {"isRdma": true,
            "devices": ["101e"]}}]})",
       "intel.com/b=4", "isRdma: must be true or false"},
      {"not for RDMA devices", One(R"("selectors": {"devices": ["101e"]})"), "",
       "have no isRdma: true"},
      {"a pool that is not for RDMA keeps its devices",
       R"({"resourceList": [
           {"resourceName": "net", "selectors": {"pfNames": ["ens3f0#0-1"]}},
           {"resourceName": "rdma", "selectors": {"isRdma": true,
            "pfNames": ["ens3f0"]}}]})",
       "intel.com/rdma=2", "have no isRdma: true"},
      {"a device goes to the first pool that takes it",
       R"({"resourceList": [
           {"resourceName": "a", "selectors": {"isRdma": true,
            "pfNames": ["ens3f0#1-2"]}},
           {"resourceName": "b", "selectors": {"isRdma": true,
            "devices": ["101e"]}}]})",
       "intel.com/a=2 intel.com/b=2", ""},
      {"an accelerator",
       One(R"("deviceType": "accelerator", "selectors": {"vendors": ["8086"]})"),
       "", "is no RDMA device"},
      {"an unknown type", One(R"("deviceType": "nic", "selectors": {})"),
       kRefused, "\"nic\" is none of netDevice"},
      {"vDPA and RDMA", Selecting(R"(, "vdpaType": "vhost")"), kRefused,
       "exclude each other"},
      {"vDPA", One(R"("selectors": {"vdpaType": "vhost"})"), "",
       "have no isRdma: true"},
      {"additionalInfo and needVhostNet",
       One(R"("additionalInfo": {"*": {"token": "x"}}, "excludeTopology": true,
              "selectors": {"isRdma": true, "needVhostNet": true,
              "devices": ["101e"]})"),
       "intel.com/a=4", "needVhostNet: containers get no /dev/vhost-net"},
      {"additionalInfo of one device and of all",
       One(R"("additionalInfo": {"*": {"token": "x"}, "0000:86:00.1": null,
              "0000:86:00.2": {"Token": null}}, "selectors": {"isRdma": true,
              "devices": ["101e"]})"),
       "intel.com/a=4", ""},
      {"additionalInfo that is no string",
       One(R"("additionalInfo": {"*": {"token": 7}}, "selectors": {})"),
       kRefused, "additionalInfo.*.token: must be a string, not 7"},
      {"additionalInfo that is no map",
       One(R"("additionalInfo": {"*": "token"}, "selectors": {})"), kRefused,
       "additionalInfo.*: must be a map of strings, not \"token\""},
      {"a name twice", R"({"resourceList": [
           {"resourceName": "a", "selectors": {"isRdma": true}},
           {"resourceName": "a", "selectors": {"isRdma": true}}]})",
       kRefused, "is the name of two pools"},
      {"a name twice under two prefixes", R"({"resourceList": [
           {"resourceName": "a", "selectors": {"isRdma": true,
            "devices": ["101e"]}},
           {"resourceName": "a", "resourcePrefix": "b.c", "selectors":
            {"isRdma": true, "devices": ["101e"]}}]})",
       "intel.com/a=4 b.c/a=0", ""},
      {"a dash", R"({"resourceList": [{"resourceName": "cx-6", "selectors":
           {"isRdma": true, "devices": ["101e"]}}]})",
       "intel.com/cx-6=4", ""},
      {"names alike but for a dash", R"({"resourceList": [
           {"resourceName": "cx-6", "selectors": {"isRdma": true,
            "devices": ["101e"]}},
           {"resourceName": "cx_6", "selectors": {"isRdma": true,
            "devices": ["101e"]}}]})",
       "intel.com/cx-6=4 intel.com/cx_6=0",
       "would both set PURSER_POOL_INTEL_COM_CX_6_DEVICES, "
       "PURSER_POOL_INTEL_COM_CX_6_GID_INDEX; rename one"},
      {"names alike but for their case", R"({"resourceList": [
           {"resourceName": "vf", "selectors": {"isRdma": true,
            "devices": ["101e"]}},
           {"resourceName": "VF", "selectors": {"isRdma": true,
            "devices": ["101e"]}}]})",
       "intel.com/vf=4 intel.com/VF=0",
       "PCIDEVICE_INTEL_COM_VF, PCIDEVICE_INTEL_COM_VF_INFO; rename one"},
      {"no name", R"({"resourceList": [{"selectors": {"isRdma": true}}]})",
       kRefused, "every resource needs a name"},
      {"a bad name", R"({"resourceList": [{"resourceName": "a/b",
           "selectors": {"isRdma": true}}]})",
       kRefused, "is no resource name"},
      {"an empty list", R"({"resourceList": []})", kRefused,
       "must list a resource"},
      {"not JSON", "{\"resourceList\": [}", kRefused, "c.json:1:19: not JSON"},
  };
}

std::vector<Row> Selections() {
  return {
      {"all: neither the PF of VFs, nor sub-functions, nor soft-RoCE",
       Selecting(""), "intel.com/a=10", ""},
      {"vendors", Selecting(R"(, "vendors": ["8086"])"), "intel.com/a=1", ""},
      {"ids are compared as they are", Selecting(R"(, "vendors": ["0x15b3"])"),
       "intel.com/a=0", ""},
      {"drivers", Selecting(R"(, "drivers": ["mlx4_core", "ice"])"),
       "intel.com/a=2", ""},
      {"PCI addresses",
       Selecting(R"(, "pciAddresses": ["0000:86:00.1", "0000:86:00.4"])"),
       "intel.com/a=2", ""},
      {"ACPI indexes", Selecting(R"(, "acpiIndexes": ["101"])"),
       "intel.com/a=0", ""},
      {"a PF's functions", Selecting(R"(, "pfNames": ["ens3f0"])"),
       "intel.com/a=4", ""},
      {"a range", Selecting(R"(, "pfNames": ["ens3f0#1-2"])"), "intel.com/a=2",
       ""},
      {"numbers and ranges, the name in any case",
       Selecting(R"(, "pfNames": ["ENS3F0#0,2-3"])"), "intel.com/a=3", ""},
      {"a range that is none", Selecting(R"(, "pfNames": ["ens3f0#a-b"])"),
       "intel.com/a=0", "it selects nothing"},
      {"a PF without VFs is its own", Selecting(R"(, "pfNames": ["ens1f0"])"),
       "intel.com/a=1", ""},
      {"but has no number", Selecting(R"(, "pfNames": ["ens1f0#0"])"),
       "intel.com/a=0", ""},
      {"root devices", Selecting(R"(, "rootDevices": ["0000:86:00.0#3"])"),
       "intel.com/a=1", ""},
      {"link types", Selecting(R"(, "linkTypes": ["infiniband"])"),
       "intel.com/a=1", ""},
      {"partition keys", Selecting(R"(, "pKeys": ["0xffff"])"), "intel.com/a=3",
       ""},
      {"DDP profiles, which are Intel's E810's",
       Selecting(R"(, "ddpProfiles": ["GTPv1-C/U"])"), "intel.com/a=0",
       "it selects nothing"},
      {"AND between lists",
       Selecting(R"(, "pfNames": ["ens3f0"], "vendors": ["8086"])"),
       "intel.com/a=0", ""},
      {"sub-functions",
       One(R"("deviceType": "auxNetDevice", "selectors": {"isRdma": true,
              "auxTypes": ["sf"], "pfNames": ["ens1f0#88"]})"),
       "intel.com/a=1", ""},
  };
}

void Check(const PeerNode& node, const Row& row) {
  SCOPED_TRACE(row.what);
  const absl::StatusOr<Config> config = ParseConfig("c.json", row.config);
  if (!config.ok()) {
    EXPECT_EQ(row.advertised, kRefused) << config.status();
    EXPECT_THAT(std::string(config.status().message()),
                testing::HasSubstr(row.warning));
    return;
  }
  EXPECT_EQ(config->form, ConfigForm::kSriov);
  EXPECT_EQ(node.Advertised(*config), row.advertised);
  const std::string warnings = absl::StrJoin(config->warnings, "\n");
  if (*row.warning == '\0') {
    EXPECT_EQ(warnings, "");
  } else {
    EXPECT_THAT(warnings, testing::HasSubstr(row.warning));
  }
}

TEST(SriovTable, SideBySideWithThatPlugin) {
  const PeerNode node;
  size_t rows = 0;
  for (const std::vector<Row>& table : {Forms(), Selections()}) {
    for (const Row& row : table) Check(node, row);
    rows += table.size();
  }
  EXPECT_GE(rows, 40u);
}

TEST(SriovTable, WhatHasTheDefaultRouteIsLeftOut) {
  PeerNode node;
  node.node().tree().Write(
      "proc/net/route", "ens3f0v1\t00000000\t0102000A\t3\t0\t0\t0\t00000000\n");
  const Config config =
      ParseConfig("c.json", Selecting(R"(, "devices": ["101e"])")).value();
  EXPECT_EQ(node.Advertised(config), "intel.com/a=3");
}

TEST(SriovTable, ThePrefixIsAnOption) {
  const Config config = ParseConfig("c.json", Selecting(""),
                                    {.sriov_resource_prefix = "nvidia.com"})
                            .value();
  EXPECT_EQ(config.pools[0].full_name(), "nvidia.com/a");
}

}  // namespace
}  // namespace purser::plugin
