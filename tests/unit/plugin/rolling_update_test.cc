// SPDX-License-Identifier: Apache-2.0
//
// Two processes of one installation beside each other, as with maxSurge.
#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "tests/unit/plugin/registrar_fixture.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using fakes::SecondPlugin;

std::string Name(const testing::TestParamInfo<SecondPlugin>& info) {
  switch (info.param) {
    case SecondPlugin::kStopsTheFirst:
      return "KubeletThatStopsTheFirst";
    case SecondPlugin::kMixesThemUp:
      return "KubeletThatMixesThemUp";
    case SecondPlugin::kSideBySide:
      return "KubeletThatHearsBoth";
  }
  return "";
}

class RollingUpdateTest : public RegistrarTest,
                          public testing::WithParamInterface<SecondPlugin> {
 protected:
  RollingUpdateTest() {
    UseKubelet({.plugins_registry = true, .second_plugin = GetParam()});
    options_.lost_stream_timeout = 30ms;
  }
  std::unique_ptr<TestPlugin> StartNewer() {
    RegistrarOptions newer = options_;
    newer.identity.started_ms = options_.identity.started_ms + 1;
    return StartPlugin(newer);
  }
  // By the plugin whose socket is asked to allocate.
  bool AllocatedBy(TestPlugin& plugin) {
    const auto before = plugin.server().service().allocations();
    const bool granted = kubelet_->Allocate("pod", {{kHca, 1}}).ok();
    kubelet_->Free("pod");
    return granted && plugin.server().service().allocations() == before + 1;
  }
};

INSTANTIATE_TEST_SUITE_P(Kubelets, RollingUpdateTest,
                         testing::Values(SecondPlugin::kStopsTheFirst,
                                         SecondPlugin::kMixesThemUp,
                                         SecondPlugin::kSideBySide),
                         Name);

TEST_P(RollingUpdateTest, TheNewOneIsReadyBeforeTheOldOneGoes) {
  ASSERT_TRUE(kubelet_->Start().ok());
  auto old = StartPlugin();
  ASSERT_TRUE(old->BecomesReady());
  auto newer = StartNewer();
  ASSERT_TRUE(newer->BecomesReady());
  EXPECT_TRUE(AllocatedBy(*newer));
  old.reset();
  // Some kubelets drop the new one with the old one: it comes back.
  EXPECT_TRUE(WaitFor([&](const auto& r) {
    return r.connected && r.plugins == 1 && r.healthy.size() == 3;
  }));
  EXPECT_TRUE(newer->BecomesReady());
  EXPECT_TRUE(AllocatedBy(*newer));
  EXPECT_LE(Registrations(), 3);
}

TEST_P(RollingUpdateTest, TheyDoNotPushEachOtherOut) {
  ASSERT_TRUE(kubelet_->Start().ok());
  auto old = StartPlugin();
  ASSERT_TRUE(old->BecomesReady());
  auto newer = StartNewer();
  ASSERT_TRUE(newer->BecomesReady());
  EXPECT_FALSE(
      WaitFor([](const auto& r) { return r.registrations > 2; }, 300ms));
}

TEST_P(RollingUpdateTest, TheOldOneIsThereIfTheNewOneFails) {
  ASSERT_TRUE(kubelet_->Start().ok());
  auto old = StartPlugin();
  ASSERT_TRUE(old->BecomesReady());
  auto newer = StartNewer();
  ASSERT_TRUE(newer->BecomesReady());
  newer.reset();
  EXPECT_TRUE(WaitFor([&](const auto& r) {
    return r.connected && r.plugins == 1 && r.healthy.size() == 3;
  }));
  EXPECT_TRUE(old->BecomesReady());
  EXPECT_TRUE(AllocatedBy(*old));
}

TEST_P(RollingUpdateTest, TheKubeletMayRestartMeanwhile) {
  ASSERT_TRUE(kubelet_->Start().ok());
  auto old = StartPlugin();
  ASSERT_TRUE(old->BecomesReady());
  auto newer = StartNewer();
  ASSERT_TRUE(newer->BecomesReady());
  for (int restart = 0; restart < 3; ++restart) {
    ASSERT_TRUE(kubelet_->Restart().ok());
    ASSERT_TRUE(Advertised());
  }
  ASSERT_TRUE(newer->BecomesReady());
  old.reset();
  EXPECT_TRUE(WaitFor([&](const auto& r) {
    return r.connected && r.plugins == 1 && r.healthy.size() == 3;
  }));
  EXPECT_TRUE(AllocatedBy(*newer));
}

TEST_P(RollingUpdateTest, WorksInPluginsRegistryToo) {
  UsePluginsRegistry(RegistrationMode::kPluginsRegistry);
  options_.stream_timeout = 500ms;
  ASSERT_TRUE(kubelet_->Start().ok());
  auto old = StartPlugin();
  ASSERT_TRUE(old->BecomesReady());
  auto newer = StartNewer();
  ASSERT_TRUE(newer->BecomesReady());
  old.reset();
  EXPECT_TRUE(WaitFor([&](const auto& r) {
    return r.connected && r.plugins == 1 && r.healthy.size() == 3;
  }));
  EXPECT_TRUE(newer->BecomesReady());
}

// A stream that the kubelet drops is taken back by the newest only, until that
// one has had its time.
TEST_P(RollingUpdateTest, TheOldOneStandsByForAWhile) {
  ASSERT_TRUE(kubelet_->Start().ok());
  options_.longest_stream_timeout = 600ms;
  options_.check_interval = 50ms;
  auto old = StartPlugin();
  ASSERT_TRUE(old->BecomesReady());
  // Serves, and does not register.
  PoolResource pool{PoolConfig{.rdma_hca_max = 3}};
  ResourceServer idle(pool, {"test", 2}, [] {});
  ASSERT_TRUE(idle.Bind(kubelet_->device_plugins_dir().string(),
                        RegistrationWay::kKubeletSocket)
                  .ok());
  kubelet_->DropStream(kHca);
  EXPECT_TRUE(old->Becomes([](const auto& state) {
    return absl::StrContains(state.readiness.message(), "standing by");
  }));
  EXPECT_EQ(Registrations(), 1);
  EXPECT_TRUE(old->BecomesReady());
  EXPECT_EQ(Registrations(), 2);
}

}  // namespace
}  // namespace purser::plugin
