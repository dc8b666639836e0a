// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/names.h"

#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

TEST(Names, VariablesAreWhatAShellReads) {
  EXPECT_EQ(PoolDevicesVariable("rdma", "hca"), "PURSER_POOL_HCA_DEVICES");
  EXPECT_EQ(PoolDevicesVariable("rdma", "hca-fast.2"),
            "PURSER_POOL_HCA_FAST_2_DEVICES");
  EXPECT_EQ(PoolDevicesVariable("example.com", "hca"),
            "PURSER_POOL_EXAMPLE_COM_HCA_DEVICES");
  EXPECT_EQ(PoolGidIndexVariable("rdma", "hca"), "PURSER_POOL_HCA_GID_INDEX");
}

TEST(Names, CapacityResourcesTellTheirUnit) {
  EXPECT_EQ(QueueMemoryResourceName(1), "rdma/wqe-mib");
  EXPECT_EQ(QueueMemoryResourceName(16), "rdma/wqe-16mib");
  EXPECT_EQ(QueuePairResourceName(1), "rdma/qp");
  EXPECT_EQ(QueuePairResourceName(64), "rdma/qp-64");
  for (const char* is :
       {"rdma/wqe-mib", "rdma/wqe-16mib", "rdma/qp", "rdma/qp-64"})
    EXPECT_TRUE(IsCapacityResource(is)) << is;
  for (const char* is_not : {"rdma/hca", "rdma/wqe-16gib", "rdma/wqe-xmib",
                             "rdma/wqe-mi", "rdma/qp-x", "rdma/qps", "x/qp"})
    EXPECT_FALSE(IsCapacityResource(is_not)) << is_not;
}

TEST(Names, TheSriovPluginsVariable) {
  EXPECT_EQ(SriovVariable("intel.com", "sriov_rdma"),
            "PCIDEVICE_INTEL_COM_SRIOV_RDMA");
  EXPECT_EQ(SriovVariable("nvidia.com", "cx-6"), "PCIDEVICE_NVIDIA_COM_CX-6");
  EXPECT_EQ(SriovVariable("nvidia.com", "cx_6"), "PCIDEVICE_NVIDIA_COM_CX_6");
}

TEST(Names, PrefixIsADnsSubdomainOutsideKubernetes) {
  for (const char* good : {"rdma", "example.com", "a-b.c1", "requests",
                           "kubernetes.io.example.com"})
    EXPECT_TRUE(CheckResourcePrefix(good).ok()) << good;
  for (const char* bad :
       {"", "Rdma", "a_b", "-a", "a.", ".a", "a..b", "a/b", "kubernetes.io",
        "x.kubernetes.io", "my-kubernetes.io", "requests.example.com"})
    EXPECT_FALSE(CheckResourcePrefix(bad).ok()) << bad;
  // With "requests." before it, it is still a subdomain.
  EXPECT_TRUE(CheckResourcePrefix(std::string(244, 'a')).ok());
  EXPECT_FALSE(CheckResourcePrefix(std::string(245, 'a')).ok());
}

TEST(Names, ResourceNameIsAKubernetesName) {
  for (const char* good : {"hca", "hca_shared", "A.b-C", "1"})
    EXPECT_TRUE(CheckResourceName(good).ok()) << good;
  for (const char* bad : {"", "rdma/hca", "-a", "a-", "a b", "a$", "ä"})
    EXPECT_FALSE(CheckResourceName(bad).ok()) << bad;
  EXPECT_TRUE(CheckResourceName(std::string(63, 'a')).ok());
  EXPECT_FALSE(CheckResourceName(std::string(64, 'a')).ok());
}

}  // namespace
}  // namespace purser::plugin
