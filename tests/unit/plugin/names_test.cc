// SPDX-License-Identifier: Apache-2.0
#include "plugin/names.h"

#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

TEST(Names, SocketNamesAreDistinctAndSafe) {
  EXPECT_EQ(SocketName("rdma/hca"), "purser-rdma_hca.sock");
  EXPECT_EQ(SocketName("example.com/a_b-c"), "purser-example.com_a_b-c.sock");
}

TEST(Names, VariablesAreWhatAShellReads) {
  EXPECT_EQ(PoolDevicesVariable("rdma", "hca"), "PURSER_POOL_HCA_DEVICES");
  EXPECT_EQ(PoolDevicesVariable("rdma", "hca-fast.2"),
            "PURSER_POOL_HCA_FAST_2_DEVICES");
  EXPECT_EQ(PoolDevicesVariable("example.com", "hca"),
            "PURSER_POOL_EXAMPLE_COM_HCA_DEVICES");
}

TEST(Names, PrefixIsADnsSubdomainOutsideKubernetes) {
  for (const char* good : {"rdma", "example.com", "a-b.c1", "my-kubernetes.io"})
    EXPECT_TRUE(CheckResourcePrefix(good).ok()) << good;
  for (const char* bad : {"", "Rdma", "a_b", "-a", "a.", ".a", "a..b", "a/b",
                          "kubernetes.io", "x.kubernetes.io"})
    EXPECT_FALSE(CheckResourcePrefix(bad).ok()) << bad;
  EXPECT_FALSE(CheckResourcePrefix(std::string(254, 'a')).ok());
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
