// SPDX-License-Identifier: Apache-2.0
//
// Registration by the kubelet's socket.
#include "plugin/registrar.h"

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "tests/unit/plugin/registrar_fixture.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(RegistrarTest, ServesThenRegistersOnce) {
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(Registrations(), 1);
  EXPECT_THAT(kubelet_->resource(kHca)->endpoint,
              StartsWith("purser-rdma_hca-"));
  EXPECT_EQ(plugin->State().registered, 1u);
  EXPECT_EQ(plugin->State().failed, 0u);
  // Wakes without a cause change nothing.
  for (int i = 0; i < 50; ++i) plugin->wakeup().Notify();
  tree_.Write("kubelet/device-plugins/other.sock", "");
  EXPECT_FALSE(
      WaitFor([](const auto& r) { return r.registrations > 1; }, 100ms));
}

TEST_F(RegistrarTest, WaitsForAKubeletThatComesLater) {
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->Becomes([](const auto& state) {
    return absl::IsNotFound(state.readiness) &&
           absl::StrContains(state.readiness.message(), "--kubelet-root-dir");
  }));
  tree_.Directory("kubelet/device-plugins");
  EXPECT_TRUE(plugin->Becomes([](const auto& state) {
    return absl::StrContains(state.readiness.message(), "no kubelet.sock");
  }));
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(Advertised());
}

TEST_F(RegistrarTest, RegistersAnewAfterEachRestartOfTheKubelet) {
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  for (int restart = 1; restart <= 5; ++restart) {
    ASSERT_TRUE(kubelet_->Restart().ok());
    ASSERT_TRUE(RegisteredAgain(1 + restart)) << restart;
  }
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(Registrations(), 6);
}

TEST_F(RegistrarTest, RegistersAnewWhenAKubeletComesBackFromACrash) {
  ASSERT_TRUE(kubelet_->Start().ok());
  options_.lost_stream_timeout = 20ms;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  kubelet_->Crash();
  EXPECT_TRUE(plugin->Becomes([](const auto& state) {
    return state.failed >= 2 && absl::IsUnavailable(state.readiness);
  }));
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(Advertised());
  EXPECT_TRUE(plugin->BecomesReady());
}

TEST_F(RegistrarTest, RebindsAndRegistersWhenItsSocketIsDeleted) {
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  std::filesystem::remove(kubelet_->device_plugins_dir() /
                          kubelet_->resource(kHca)->endpoint);
  EXPECT_TRUE(RegisteredAgain(2));
  EXPECT_EQ(kubelet_->resource(kHca)->plugins, 1);
}

// The kubelet never dials again after a stream broke. That the plugin's socket
// answers is no help.
TEST_F(RegistrarTest, RegistersAnewSoonAfterTheStreamIsLost) {
  for (const fakes::SecondPlugin kubelet :
       {fakes::SecondPlugin::kStopsTheFirst, fakes::SecondPlugin::kMixesThemUp,
        fakes::SecondPlugin::kSideBySide}) {
    UseKubelet({.second_plugin = kubelet});
    ASSERT_TRUE(kubelet_->Start().ok());
    const auto plugin = StartPlugin();
    ASSERT_TRUE(Advertised());
    kubelet_->DropStream(kHca);
    ASSERT_TRUE(WaitFor([](const auto& r) { return !r.connected; }));
    EXPECT_EQ(kubelet_->resource(kHca)->healthy.size(), 0u);
    EXPECT_TRUE(RegisteredAgain(2));
    EXPECT_TRUE(plugin->BecomesReady());
  }
}

TEST_F(RegistrarTest, RegistersEverMoreSlowlyWhereNoStreamIsOpened) {
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->IgnoreLists(true);
  options_.stream_timeout = 100ms;
  const auto plugin = StartPlugin();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitFor([](const auto& r) { return r.registrations == 3; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
  EXPECT_FALSE(plugin->State().readiness.ok());
  kubelet_->IgnoreLists(false);
  EXPECT_TRUE(Advertised());
}

// As with a kubelet that finds the list too large.
TEST_F(RegistrarTest, RegistersEverMoreSlowlyWhereStreamsDoNotLast) {
  ASSERT_TRUE(kubelet_->Start().ok());
  options_.lost_stream_timeout = 50ms;
  const auto plugin = StartPlugin();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= 4; ++i) {
    ASSERT_TRUE(RegisteredAgain(i));
    kubelet_->DropStream(kHca);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms + 100ms + 200ms);
}

TEST_F(RegistrarTest, AStreamThatLastedMakesItQuickAgain) {
  ASSERT_TRUE(kubelet_->Start().ok());
  options_.lost_stream_timeout = 50ms;
  options_.lasting_stream = 0ms;
  const auto plugin = StartPlugin();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= 9; ++i) {
    ASSERT_TRUE(RegisteredAgain(i));
    ASSERT_TRUE(plugin->BecomesReady());
    kubelet_->DropStream(kHca);
    ASSERT_TRUE(WaitFor([](const auto& r) { return !r.connected; }));
  }
  // 12.7 s if each took twice as long as the one before.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

TEST_F(RegistrarTest, TriesAgainWhenTheKubeletRefuses) {
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->RefuseRegistrations(absl::UnknownError("not today"));
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->Becomes([](const auto& state) {
    return state.failed >= 3 &&
           absl::StrContains(state.readiness.message(), "not today");
  }));
  kubelet_->RefuseRegistrations(std::nullopt);
  EXPECT_TRUE(Advertised());
  EXPECT_EQ(Registrations(), 1);
}

TEST_F(RegistrarTest, ASlowAnswerIsNotASecondRegistration) {
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->DelayRegistrations(800ms);
  options_.register_deadline = 500ms;
  options_.first_retry = options_.longest_retry = 10s;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(Registrations(), 1);
}

// The call may reach another kubelet than the one whose socket was looked at:
// while a kubelet starts, and where it is slow to take other resources.
TEST_F(RegistrarTest, AKubeletThatRestartedMeanwhileIsNotRegisteredWithTwice) {
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->DelayRegistrations(kLong);
  options_.register_deadline = 2 * kLong;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(kubelet_->WaitForRegisterCalls(1, kLong));
  const auto made = std::filesystem::last_write_time(kubelet_->socket_path());
  std::filesystem::last_write_time(kubelet_->socket_path(), made + 1s);
  kubelet_->DelayRegistrations(0ms);
  ASSERT_TRUE(Advertised());
  EXPECT_TRUE(plugin->BecomesReady());
  plugin->wakeup().Notify();
  EXPECT_FALSE(
      WaitFor([](const auto& r) { return r.registrations > 1; }, 100ms));
}

// One that comes too late for the plugin's patience makes the path useless: a
// kubelet of today refuses it from then on.
TEST_F(RegistrarTest, RegistersUnderAnotherPathAfterAnAnswerThatWasLost) {
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->DelayRegistrations(300ms);
  options_.register_deadline = 100ms;
  options_.first_retry = options_.longest_retry = 20ms;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(kubelet_->WaitForRegisterCalls(3, kLong));
  kubelet_->DelayRegistrations(0ms);
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_TRUE(WaitFor([](const auto& r) { return r.plugins == 1; }));
}

TEST_F(RegistrarTest, DoesNotRegisterBeforeTheDevicesAreKnown) {
  ASSERT_TRUE(kubelet_->Start().ok());
  TestPlugin plugin(options_);
  ASSERT_TRUE(plugin.Start().ok());
  EXPECT_TRUE(plugin.Becomes([](const auto& state) {
    return absl::StrContains(state.readiness.message(), "not known yet");
  }));
  EXPECT_EQ(Registrations(), 0);
  plugin.Know();
  plugin.wakeup().Notify();
  EXPECT_TRUE(Advertised());
}

TEST_F(RegistrarTest, StopCancelsARegistrationUnderWay) {
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->DelayRegistrations(30s);
  const auto plugin = StartPlugin();
  ASSERT_TRUE(kubelet_->WaitForRegisterCalls(1, kLong));
  const auto begin = std::chrono::steady_clock::now();
  plugin->registrar().Stop();
  plugin->registrar().Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            options_.register_deadline / 2);
}

TEST_F(RegistrarTest, AnotherInstallationIsAnErrorUntilItGoes) {
  ASSERT_TRUE(kubelet_->Start().ok());
  RegistrarOptions others = options_;
  others.identity = {"another", 2};
  auto other = StartPlugin(others);
  ASSERT_TRUE(Advertised());
  TestPlugin plugin(options_);
  plugin.Know();
  const absl::Status refused = plugin.Start();
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("another device plugin serves rdma/hca on this node"));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(other->server().endpoint().text()));
  // Where it comes while this one runs, too.
  plugin.registrar().Start();
  EXPECT_TRUE(plugin.Becomes([](const auto& state) {
    return absl::IsAlreadyExists(state.readiness);
  }));
  EXPECT_EQ(Registrations(), 1);
  other.reset();
  EXPECT_TRUE(plugin.BecomesReady());
  EXPECT_EQ(Registrations(), 2);
}

}  // namespace
}  // namespace purser::plugin
