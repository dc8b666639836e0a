// SPDX-License-Identifier: Apache-2.0
#include "plugin/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;
using ::testing::HasSubstr;

constexpr const char* kHca = "rdma/hca";

LiveEndpoint Endpoint(const std::string& installation, uint64_t started,
                      system_clock::time_point bound_at = system_clock::now(),
                      uint32_t serial = 1) {
  return {EndpointName::Make(kHca, {installation, started}, serial), bound_at};
}

const Peers::TimePoint kNow;

// Once it is decided.
bool Decides(Peers& peers, system_clock::time_point registered_at) {
  return peers.LaterOneWent(registered_at, peers.decides_at().value_or(kNow));
}

TEST(Peers, TellsTheNewerOne) {
  Peers peers(kHca, {"a", 5});
  EXPECT_EQ(peers.Newer(), nullptr);
  ASSERT_TRUE(peers.Look({Endpoint("a", 4)}, kNow).ok());
  EXPECT_EQ(peers.Newer(), nullptr);
  ASSERT_TRUE(peers.Look({Endpoint("a", 4), Endpoint("a", 6)}, kNow).ok());
  ASSERT_NE(peers.Newer(), nullptr);
  EXPECT_EQ(peers.Newer()->started_ms, 6u);
  ASSERT_TRUE(peers.Look({Endpoint("a", 4)}, kNow).ok());
  EXPECT_EQ(peers.Newer(), nullptr);
}

TEST(Peers, AnotherInstallationIsAnErrorAndAnotherResourceIsNot) {
  Peers peers(kHca, {"a", 5});
  const absl::Status foreign = peers.Look({Endpoint("b", 6)}, kNow);
  EXPECT_TRUE(absl::IsAlreadyExists(foreign));
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("uninstall one"));
  EXPECT_EQ(peers.Newer(), nullptr);
  EXPECT_TRUE(
      peers.Look({{EndpointName::Make("rdma/qp", {"b", 6}, 1), {}}}, kNow)
          .ok());
}

TEST(Peers, OneThatMayHaveRegisteredLaterIsMissed) {
  const auto now = system_clock::now();
  Peers peers(kHca, {"a", 5});
  ASSERT_TRUE(peers.Look({Endpoint("a", 6, now)}, kNow).ok());
  EXPECT_FALSE(peers.decides_at());
  EXPECT_FALSE(Decides(peers, now - 1h));
  ASSERT_TRUE(peers.Look({}, kNow).ok());
  ASSERT_TRUE(peers.decides_at());
  EXPECT_FALSE(peers.LaterOneWent(now - 1h, kNow));  // it may come back
  EXPECT_TRUE(Decides(peers, now - 1h));
  EXPECT_FALSE(Decides(peers, now - 1h));  // told once
}

TEST(Peers, OneThatRegisteredLongBeforeIsNotMissed) {
  const auto now = system_clock::now();
  Peers peers(kHca, {"a", 5});
  ASSERT_TRUE(peers.Look({Endpoint("a", 4, now - 1h)}, kNow).ok());
  ASSERT_TRUE(peers.Look({}, kNow).ok());
  EXPECT_FALSE(Decides(peers, now));
}

// Both would replace theirs in turns for ever.
TEST(Peers, OneThatReplacesItsSocketIsNotMissed) {
  const auto now = system_clock::now();
  Peers peers(kHca, {"a", 5});
  ASSERT_TRUE(peers.Look({Endpoint("a", 6, now, 1)}, kNow).ok());
  ASSERT_TRUE(peers.Look({}, kNow).ok());
  ASSERT_TRUE(peers.Look({Endpoint("a", 6, now, 2)}, kNow).ok());
  EXPECT_FALSE(Decides(peers, now - 1h));
}

}  // namespace
}  // namespace purser::plugin
