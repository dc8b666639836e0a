// SPDX-License-Identifier: Apache-2.0
#include "rdma/uverbs_entry.h"

#include "gtest/gtest.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/file_tree.h"

namespace purser::rdma {
namespace {

class UverbsEntryTest : public ::testing::Test {
 protected:
  std::optional<UverbsEntry> Find(const std::string& device) {
    const auto found = FindUverbsEntry(tree_.path("sys"), device);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(std::nullopt);
  }
  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
};

TEST_F(UverbsEntryTest, IsFoundByTheDevicesNameAndKnownWhenItIsGone) {
  EXPECT_EQ(Find("rxe1"), std::nullopt) << "no such directory";
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  EXPECT_EQ(Find("rxe1"), std::nullopt);
  sysfs_.AddDevice(fakes::SysfsRxe("rxe1", "eth1"));
  const std::optional<UverbsEntry> entry = Find("rxe1");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->path, tree_.path("sys/class/infiniband_verbs/uverbs1"));
  EXPECT_TRUE(IsThere(*entry));
  EXPECT_EQ(Find("rxe1"), entry);

  sysfs_.RemoveDevice("rxe1");
  EXPECT_FALSE(IsThere(*entry));
  EXPECT_EQ(Find("rxe1"), std::nullopt);
  std::filesystem::create_directories(entry->path);
  EXPECT_FALSE(IsThere(*entry)) << "another device took its number";
}

TEST_F(UverbsEntryTest, WhatCannotBeToldIsNotTakenForGone) {
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  UverbsEntry entry = *Find("rxe0");
  tree_.Link("loop", "loop");
  entry.path = tree_.path("loop");
  EXPECT_TRUE(IsThere(entry)) << "ELOOP";
  tree_.Remove("sys/class/infiniband_verbs");
  tree_.Link("sys/class/infiniband_verbs", "infiniband_verbs");
  EXPECT_FALSE(FindUverbsEntry(tree_.path("sys"), "rxe0").ok());
}

}  // namespace
}  // namespace purser::rdma
