// SPDX-License-Identifier: Apache-2.0
#include "rdma/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"

namespace purser::rdma {
namespace {

using fakes::FakeSysfs;
using fakes::FakeVerbs;
using fakes::FileTree;
using fakes::Ipv4Gid;
using fakes::SysfsGid;
using ::testing::HasSubstr;

ibv_gid LinkLocal() {
  ibv_gid gid{};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  gid.raw[15] = 7;
  return gid;
}

class CapabilitiesTest : public ::testing::Test {
 protected:
  void Open(const fakes::FakeDevice& device) {
    verbs_.AddDevice(device);
    auto context = OpenDevice(verbs_, device.name);
    ASSERT_TRUE(context.ok());
    context_ = *std::move(context);
  }
  // A soft-RoCE port whose GID table holds just what is set here.
  void OpenEmpty() {
    fakes::FakeDevice device = fakes::RxeDevice();
    device.ports[0].gids.assign(8, ibv_gid{});
    device.ports[0].attr.gid_tbl_len = 8;
    Open(device);
    fakes::SysfsFakeDevice in_sysfs = fakes::SysfsRxe("rxe0", "eth0");
    in_sysfs.ports[0].gids.clear();
    sysfs_.AddDevice(in_sysfs);
  }
  void SetGid(int index, const ibv_gid& gid, const std::string& type) {
    verbs_.SetGid("rxe0", 1, index, gid);
    sysfs_.SetGid("rxe0", 1, {index, "unused", type, "eth0"});
  }
  absl::StatusOr<Gid> Preferred() {
    return PreferredGid(verbs_, context_, 1, sysfs_.sysfs_root());
  }

  FileTree tree_;
  FakeSysfs sysfs_{tree_};
  FakeVerbs verbs_;
  Context context_;
};

TEST_F(CapabilitiesTest, LimitsComeFromTheDevice) {
  fakes::FakeDevice device = fakes::RxeDevice();
  device.attr.max_qp_wr = 16384;
  device.attr.max_cqe = -1;  // a driver's nonsense
  Open(device);
  const auto capabilities = QueryCapabilities(verbs_, context_);
  ASSERT_TRUE(capabilities.ok());
  EXPECT_EQ(capabilities->limits.max_qp_wr, 16384u);
  EXPECT_EQ(capabilities->limits.max_sge, 32u);
  EXPECT_EQ(capabilities->limits.max_cqe, 0u);
  EXPECT_EQ(capabilities->attr.max_qp, device.attr.max_qp);
}

TEST_F(CapabilitiesTest, FailingQueryIsAnError) {
  Open(fakes::RxeDevice());
  verbs_.FailNext("query_device", EIO);
  EXPECT_EQ(ErrnoOf(QueryCapabilities(verbs_, context_).status()), EIO);
}

TEST_F(CapabilitiesTest, PrefersRoceV2ThenIpv4ThenTheLowestIndex) {
  OpenEmpty();
  SetGid(0, LinkLocal(), "IB/RoCE v1");
  EXPECT_EQ(Preferred()->index, 0);
  SetGid(1, LinkLocal(), "IB/RoCE v1");
  EXPECT_EQ(Preferred()->index, 0);
  SetGid(2, Ipv4Gid("192.0.2.1"), "IB/RoCE v1");
  EXPECT_EQ(Preferred()->index, 2);
  SetGid(4, LinkLocal(), "RoCE v2");
  EXPECT_EQ(Preferred()->index, 4);
  EXPECT_FALSE(Preferred()->ipv4_mapped);
  SetGid(6, Ipv4Gid("192.0.2.1"), "RoCE v2");
  EXPECT_EQ(Preferred()->index, 6);
  EXPECT_TRUE(Preferred()->ipv4_mapped);
  EXPECT_EQ(Preferred()->type, GidType::kRoceV2);
  SetGid(5, Ipv4Gid("192.0.2.2"), "RoCE v2");
  EXPECT_EQ(Preferred()->index, 5);
}

TEST_F(CapabilitiesTest, IndexIsLookedUpAgainEachTime) {
  OpenEmpty();
  SetGid(1, Ipv4Gid("192.0.2.1"), "RoCE v2");
  EXPECT_EQ(Preferred()->index, 1);
  verbs_.SetGid("rxe0", 1, 1, ibv_gid{});
  sysfs_.ClearGid("rxe0", 1, 1);
  SetGid(3, Ipv4Gid("192.0.2.1"), "RoCE v2");
  EXPECT_EQ(Preferred()->index, 3);
}

TEST_F(CapabilitiesTest, NoGidSaysWhatThePortLacks) {
  OpenEmpty();
  const auto gid = Preferred();
  EXPECT_TRUE(absl::IsNotFound(gid.status()));
  EXPECT_THAT(std::string(gid.status().message()), HasSubstr("IP address"));
}

TEST_F(CapabilitiesTest, GidWhoseTypeIsGoneIsPassedOver) {
  OpenEmpty();
  verbs_.SetGid("rxe0", 1, 0, LinkLocal());  // sysfs refuses its type
  const auto gid = Preferred();
  EXPECT_TRUE(absl::IsNotFound(gid.status()));
  EXPECT_THAT(std::string(gid.status().message()), HasSubstr("types"));
  SetGid(1, LinkLocal(), "RoCE v2");
  EXPECT_EQ(Preferred()->index, 1);
}

TEST_F(CapabilitiesTest, InfinibandTakesIndexZero) {
  fakes::FakeDevice device = fakes::Mlx5Device();
  device.ports[0].attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
  Open(device);
  const auto gid = PreferredGid(verbs_, context_, 1, "/nonexistent");
  ASSERT_TRUE(gid.ok());
  EXPECT_EQ(gid->index, 0);
  EXPECT_EQ(gid->type, GidType::kInfiniband);
  verbs_.SetGid("mlx5_0", 1, 0, ibv_gid{});
  EXPECT_TRUE(absl::IsNotFound(
      PreferredGid(verbs_, context_, 1, "/nonexistent").status()));
}

TEST_F(CapabilitiesTest, FailingQueriesAreErrors) {
  OpenEmpty();
  verbs_.FailNext("query_port", EIO);
  EXPECT_EQ(ErrnoOf(Preferred().status()), EIO);
  verbs_.FailNext("query_gid", EIO);
  EXPECT_EQ(ErrnoOf(Preferred().status()), EIO);
  EXPECT_FALSE(PreferredGid(verbs_, context_, 9, "/nonexistent").ok());
}

TEST_F(CapabilitiesTest, StopsAtTheBestGid) {
  Open(fakes::RxeDevice());  // 1024 entries, index 1 is the best
  sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  ASSERT_TRUE(Preferred().ok());
  EXPECT_EQ(verbs_.Calls("query_gid"), 2u);
}

}  // namespace
}  // namespace purser::rdma
