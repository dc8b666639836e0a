// SPDX-License-Identifier: Apache-2.0
//
// plugins_registry, and the choice between it and the kubelet's socket.
#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "tests/unit/plugin/registrar_fixture.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class RegistryTest : public RegistrarTest {
 protected:
  RegistryTest() {
    UseKubelet({.kubelet_socket = false, .plugins_registry = true});
    UsePluginsRegistry(RegistrationMode::kPluginsRegistry);
  }
};

TEST_F(RegistryTest, TheKubeletFindsTheSocket) {
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_TRUE(plugin->Becomes([](const auto& s) { return s.registered == 1; }));
  EXPECT_EQ(Registrations(), 1);
  plugin->Stop();
  EXPECT_TRUE(WaitFor([](const auto& r) { return !r.connected; }));
  EXPECT_TRUE(std::filesystem::is_empty(kubelet_->plugins_registry_dir()));
}

TEST_F(RegistryTest, WaitsForTheDirectory) {
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->Becomes([](const auto& state) {
    return absl::StrContains(state.readiness.message(),
                             "there is no directory") &&
           absl::StrContains(state.readiness.message(), "plugins_registry");
  }));
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(plugin->BecomesReady());
}

// No registration of ours: the kubelet finds the socket where it left it.
TEST_F(RegistryTest, OutlivesRestartsOfTheKubelet) {
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  const std::string endpoint = kubelet_->resource(kHca)->endpoint;
  for (int restart = 1; restart <= 5; ++restart) {
    ASSERT_TRUE(kubelet_->Restart().ok());
    ASSERT_TRUE(RegisteredAgain(1 + restart)) << restart;
  }
  EXPECT_EQ(kubelet_->resource(kHca)->endpoint, endpoint);
  EXPECT_EQ(Registrations(), 6);
}

TEST_F(RegistryTest, MakesItsSocketAnewWhenItIsDeleted) {
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  std::filesystem::remove(kubelet_->plugins_registry_dir() /
                          kubelet_->resource(kHca)->endpoint);
  EXPECT_TRUE(RegisteredAgain(2));
  EXPECT_TRUE(plugin->BecomesReady());
}

TEST_F(RegistryTest, MakesItsSocketAnewWhenTheStreamIsLost) {
  ASSERT_TRUE(kubelet_->Start().ok());
  options_.stream_timeout = 200ms;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Advertised());
  kubelet_->DropStream(kHca);
  EXPECT_TRUE(RegisteredAgain(2));
}

TEST_F(RegistryTest, SaysWhatTheKubeletHasAgainstIt) {
  UseKubelet({.kubelet_socket = false,
              .plugins_registry = true,
              .device_plugins_from_registry = false});
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->Becomes([](const auto& state) {
    return state.failed >= 1 &&
           absl::StrContains(state.readiness.message(),
                             "no handler registered for plugin type");
  }));
}

// V#223: the kubelet would dial it again and again.
TEST_F(RegistryTest, RemovesTheSocketOfAKilledProcess) {
  ASSERT_TRUE(kubelet_->Start().ok());
  auto killed = StartPlugin();
  ASSERT_TRUE(Advertised());
  const auto path =
      kubelet_->plugins_registry_dir() / kubelet_->resource(kHca)->endpoint;
  const auto kept = tree_.root() / "kept";
  std::filesystem::create_hard_link(path, kept);
  killed.reset();
  std::filesystem::rename(kept, path);
  options_.identity.started_ms = 2;
  const auto plugin = StartPlugin();
  EXPECT_TRUE(RegisteredAgain(2));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(RegistryTest, DoesNotAppearBeforeTheDevicesAreKnown) {
  ASSERT_TRUE(kubelet_->Start().ok());
  TestPlugin plugin(options_);
  ASSERT_TRUE(plugin.Start().ok());
  EXPECT_TRUE(plugin.Becomes([](const auto& state) {
    return absl::StrContains(state.readiness.message(), "not known yet");
  }));
  EXPECT_TRUE(std::filesystem::is_empty(kubelet_->plugins_registry_dir()));
  plugin.Know();
  plugin.wakeup().Notify();
  EXPECT_TRUE(Advertised());
}

class AutoTest : public RegistrarTest {
 protected:
  AutoTest() {
    UsePluginsRegistry(RegistrationMode::kAuto);
    options_.socket_patience = 100ms;
    options_.known_socket_patience = 30s;
    options_.registry_patience = 300ms;
    options_.check_interval = 20ms;
  }
};

TEST_F(AutoTest, TakesTheSocketWhereTheKubeletHasBoth) {
  UseKubelet({.plugins_registry = true});
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  ASSERT_TRUE(plugin->BecomesReady());
  ASSERT_TRUE(kubelet_->Restart().ok());
  ASSERT_TRUE(RegisteredAgain(2));
  // Longer than any patience.
  EXPECT_FALSE(
      WaitFor([](const auto& r) { return r.registrations > 2; }, 500ms));
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kKubeletSocket);
  EXPECT_TRUE(std::filesystem::is_empty(kubelet_->plugins_registry_dir()));
}

// S#200.
TEST_F(AutoTest, ADirectoryAloneIsNoProofThatTheKubeletLooksThere) {
  ASSERT_TRUE(kubelet_->Start().ok());
  tree_.Directory("kubelet/plugins_registry");
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kKubeletSocket);
}

TEST_F(AutoTest, TakesTheRegistryWhereThereIsNoSocket) {
  UseKubelet({.kubelet_socket = false, .plugins_registry = true});
  ASSERT_TRUE(kubelet_->Start().ok());
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kPluginsRegistry);
  EXPECT_EQ(Registrations(), 1);
  ASSERT_TRUE(kubelet_->Restart().ok());
  EXPECT_TRUE(RegisteredAgain(2));
}

// kubelet --root-dir: its socket stays where it always is, and may not be seen.
TEST_F(AutoTest, TakesTheRegistryWhereThereIsNoDevicePluginsDirectory) {
  UseKubelet({.kubelet_socket = false, .plugins_registry = true});
  ASSERT_TRUE(kubelet_->Start().ok());
  std::filesystem::remove_all(kubelet_->device_plugins_dir());
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->BecomesReady());
}

TEST_F(AutoTest, TakesTheRegistryWhereTheSocketHasNoSuchService) {
  UseKubelet({.plugins_registry = true});
  ASSERT_TRUE(kubelet_->Start().ok());
  kubelet_->RefuseRegistrations(absl::UnimplementedError("unknown service"));
  const auto plugin = StartPlugin();
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kPluginsRegistry);
  EXPECT_EQ(Registrations(), 1);
}

// A plugin that starts before the kubelet.
TEST_F(AutoTest, GoesBackToTheSocketWhereTheRegistryDoesNothing) {
  tree_.Directory("kubelet/plugins_registry");
  const auto plugin = StartPlugin();
  ASSERT_TRUE(plugin->Becomes([&](const auto&) {
    return plugin->registrar().way() == RegistrationWay::kPluginsRegistry;
  }));
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kKubeletSocket);
  EXPECT_TRUE(std::filesystem::is_empty(kubelet_->plugins_registry_dir()));
  EXPECT_EQ(Registrations(), 1);
}

TEST_F(AutoTest, GoesBackToTheSocketWhereTheRegistryTakesNoDevicePlugins) {
  UseKubelet({.plugins_registry = true, .device_plugins_from_registry = false});
  tree_.Directory("kubelet/plugins_registry");
  const auto plugin = StartPlugin();
  ASSERT_TRUE(plugin->Becomes([&](const auto&) {
    return plugin->registrar().way() == RegistrationWay::kPluginsRegistry;
  }));
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kKubeletSocket);
}

// A kubelet that comes late and has both: in whichever way, once.
TEST_F(AutoTest, NeverRegistersBothWays) {
  UseKubelet({.plugins_registry = true});
  tree_.Directory("kubelet/plugins_registry");
  const auto plugin = StartPlugin();
  ASSERT_TRUE(plugin->Becomes([&](const auto&) {
    return plugin->registrar().way() == RegistrationWay::kPluginsRegistry;
  }));
  ASSERT_TRUE(kubelet_->Start().ok());
  ASSERT_TRUE(plugin->BecomesReady());
  EXPECT_FALSE(WaitFor([](const auto& r) { return r.plugins > 1; }, 500ms));
  EXPECT_EQ(Registrations(), 1);
  // What works is kept.
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kPluginsRegistry);
}

TEST_F(AutoTest, WaitsForASocketThatAnsweredBefore) {
  ASSERT_TRUE(kubelet_->Start().ok());
  tree_.Directory("kubelet/plugins_registry");
  const auto plugin = StartPlugin();
  ASSERT_TRUE(plugin->BecomesReady());
  kubelet_->Stop();
  EXPECT_FALSE(WaitFor([](const auto& r) { return r.connected; }, 500ms));
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kKubeletSocket);
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(RegisteredAgain(2));
}

TEST_F(AutoTest, DoesNotWaitForItForEver) {
  ASSERT_TRUE(kubelet_->Start().ok());
  options_.known_socket_patience = 100ms;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(plugin->BecomesReady());
  kubelet_->Stop();
  UseKubelet({.kubelet_socket = false, .plugins_registry = true});
  ASSERT_TRUE(kubelet_->Start().ok());
  EXPECT_TRUE(plugin->BecomesReady());
  EXPECT_EQ(plugin->registrar().way(), RegistrationWay::kPluginsRegistry);
}

TEST(RegistrationMode, IsNamedAsTheFlagHasIt) {
  EXPECT_EQ(*ParseRegistrationMode("auto"), RegistrationMode::kAuto);
  EXPECT_EQ(*ParseRegistrationMode("kubelet-socket"),
            RegistrationMode::kKubeletSocket);
  EXPECT_EQ(*ParseRegistrationMode("plugins-registry"),
            RegistrationMode::kPluginsRegistry);
  EXPECT_THAT(std::string(ParseRegistrationMode("both").status().message()),
              HasSubstr("\"both\" is none of"));
}

}  // namespace
}  // namespace purser::plugin
