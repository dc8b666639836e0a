// SPDX-License-Identifier: Apache-2.0
#include "plugin/registrar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "plugin/pool_resource.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/kubelet.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kHca = "rdma/hca";
// Only a failing test waits that long; a loaded machine may take some of it.
constexpr auto kLong = 60s;

std::shared_ptr<const Snapshot> Node() {
  auto snapshot = std::make_shared<Snapshot>();
  Device device;
  device.sysfs.name = "rxe0";
  device.sysfs.uverbs = "uverbs0";
  snapshot->devices = {device};
  snapshot->pools[kHca] = {0};
  return snapshot;
}

class RegistrarTest : public ::testing::Test {
 protected:
  RegistrarTest() {
    options_.device_plugins_dir = kubelet_.device_plugins_dir().string();
    // Far longer than a loaded machine takes; tests of the time-out shorten it.
    options_.stream_timeout = 5s;
    options_.first_retry = 5ms;
    options_.longest_retry = 50ms;
    options_.kubelet_absence = 50ms;
    server_ = std::make_unique<ResourceServer>(
        pool_, options_.device_plugins_dir,
        [wakeup = wakeup_] { wakeup->Notify(); });
    server_->Update(Node());
  }
  ~RegistrarTest() override {
    if (registrar_ != nullptr) registrar_->Stop();
    server_->Stop(std::chrono::system_clock::now() + 1s);
  }
  void StartPlugin() {
    registrar_ = std::make_unique<Registrar>(
        options_, std::vector<ResourceServer*>{server_.get()}, wakeup_);
    registrar_->Start();
  }
  bool Advertised() { return kubelet_.WaitForAllocatable(kHca, kLong); }
  int Registrations() {
    const auto resource = kubelet_.resource(kHca);
    return resource ? resource->registrations : 0;
  }
  Registrar::ResourceState State() { return registrar_->States().front(); }
  // The registrar's thread tells no one; it is asked until it agrees.
  bool Becomes(const std::function<bool(const Registrar::ResourceState&)>& is) {
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (!is(State())) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  bool BecomesReady() {
    return Becomes([](const auto& state) { return state.readiness.ok(); });
  }

  fakes::FileTree tree_;
  fakes::Kubelet kubelet_{tree_.root() / "kubelet"};
  RegistrarOptions options_;
  std::shared_ptr<Wakeup> wakeup_ = *Wakeup::Create();
  PoolResource pool_{PoolConfig{.rdma_hca_max = 3}};
  std::unique_ptr<ResourceServer> server_;
  std::unique_ptr<Registrar> registrar_;
};

TEST_F(RegistrarTest, ServesThenRegistersOnce) {
  ASSERT_TRUE(kubelet_.Start().ok());
  StartPlugin();
  ASSERT_TRUE(Advertised());
  EXPECT_TRUE(BecomesReady());
  EXPECT_EQ(Registrations(), 1);
  EXPECT_EQ(kubelet_.resource(kHca)->endpoint, "purser-rdma_hca.sock");
  EXPECT_EQ(State().registered, 1u);
  EXPECT_EQ(State().failed, 0u);
  // Wakes without a cause change nothing.
  for (int i = 0; i < 50; ++i) wakeup_->Notify();
  tree_.Write("kubelet/device-plugins/other.sock", "");
  EXPECT_FALSE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return r.registrations > 1; }, 100ms));
}

TEST_F(RegistrarTest, WaitsForAKubeletThatComesLater) {
  StartPlugin();
  EXPECT_TRUE(Becomes([](const auto& state) {
    return absl::IsNotFound(state.readiness) &&
           absl::StrContains(state.readiness.message(), "--kubelet-root-dir");
  }));
  tree_.Directory("kubelet/device-plugins");
  EXPECT_TRUE(Becomes([](const auto& state) {
    return absl::StrContains(state.readiness.message(), "no kubelet.sock");
  }));
  ASSERT_TRUE(kubelet_.Start().ok());
  EXPECT_TRUE(Advertised());
}

TEST_F(RegistrarTest, RegistersAnewAfterEachRestartOfTheKubelet) {
  ASSERT_TRUE(kubelet_.Start().ok());
  StartPlugin();
  ASSERT_TRUE(Advertised());
  for (int restart = 1; restart <= 5; ++restart) {
    ASSERT_TRUE(kubelet_.Restart().ok());
    ASSERT_TRUE(kubelet_.WaitFor(
        kHca,
        [&](const auto& r) {
          return r.registrations == 1 + restart && r.healthy.size() == 3;
        },
        kLong))
        << restart;
  }
  EXPECT_TRUE(BecomesReady());
}

TEST_F(RegistrarTest, RegistersAnewWhenAKubeletComesBackFromACrash) {
  ASSERT_TRUE(kubelet_.Start().ok());
  options_.stream_timeout = 100ms;
  StartPlugin();
  ASSERT_TRUE(Advertised());
  kubelet_.Crash();
  EXPECT_TRUE(Becomes([](const auto& state) {
    return state.failed >= 2 && absl::IsUnavailable(state.readiness);
  }));
  ASSERT_TRUE(kubelet_.Start().ok());
  EXPECT_TRUE(Advertised());
  EXPECT_TRUE(BecomesReady());
}

TEST_F(RegistrarTest, RebindsAndRegistersWhenItsSocketIsDeleted) {
  ASSERT_TRUE(kubelet_.Start().ok());
  StartPlugin();
  ASSERT_TRUE(Advertised());
  std::filesystem::remove(kubelet_.device_plugins_dir() /
                          "purser-rdma_hca.sock");
  EXPECT_TRUE(kubelet_.WaitFor(
      kHca,
      [](const auto& r) {
        return r.registrations == 2 && r.connected && r.healthy.size() == 3;
      },
      kLong));
}

// The kubelet never dials again after a stream broke.
TEST_F(RegistrarTest, RegistersAnewWhenTheStreamIsLost) {
  ASSERT_TRUE(kubelet_.Start().ok());
  options_.stream_timeout = 100ms;
  StartPlugin();
  ASSERT_TRUE(Advertised());
  kubelet_.DropStream(kHca);
  ASSERT_TRUE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return !r.connected; }, kLong));
  EXPECT_EQ(kubelet_.resource(kHca)->healthy.size(), 0u);
  EXPECT_TRUE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return r.connected && r.healthy.size() == 3; },
      kLong));
  EXPECT_GE(Registrations(), 2);
}

TEST_F(RegistrarTest, RegistersEverMoreSlowlyWhereNoStreamIsOpened) {
  ASSERT_TRUE(kubelet_.Start().ok());
  kubelet_.IgnoreLists(true);
  options_.stream_timeout = 100ms;
  StartPlugin();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(kubelet_.WaitFor(
      kHca, [](const auto& r) { return r.registrations == 3; }, kLong));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
  EXPECT_FALSE(State().readiness.ok());
  kubelet_.IgnoreLists(false);
  EXPECT_TRUE(Advertised());
}

TEST_F(RegistrarTest, TriesAgainWhenTheKubeletRefuses) {
  ASSERT_TRUE(kubelet_.Start().ok());
  kubelet_.RefuseRegistrations(absl::UnknownError("not today"));
  StartPlugin();
  EXPECT_TRUE(Becomes([](const auto& state) {
    return state.failed >= 3 &&
           absl::StrContains(state.readiness.message(), "not today");
  }));
  kubelet_.RefuseRegistrations(std::nullopt);
  EXPECT_TRUE(Advertised());
  EXPECT_EQ(Registrations(), 1);
}

TEST_F(RegistrarTest, ASlowAnswerIsNotASecondRegistration) {
  ASSERT_TRUE(kubelet_.Start().ok());
  kubelet_.DelayRegistrations(800ms);
  options_.register_deadline = 500ms;
  options_.first_retry = options_.longest_retry = 10s;
  StartPlugin();
  ASSERT_TRUE(Advertised());
  EXPECT_TRUE(BecomesReady());
  EXPECT_EQ(Registrations(), 1);
}

TEST_F(RegistrarTest, DoesNotRegisterBeforeTheDevicesAreKnown) {
  ASSERT_TRUE(kubelet_.Start().ok());
  server_ = std::make_unique<ResourceServer>(
      pool_, options_.device_plugins_dir,
      [wakeup = wakeup_] { wakeup->Notify(); });
  StartPlugin();
  EXPECT_TRUE(Becomes([](const auto& state) {
    return absl::StrContains(state.readiness.message(), "not known yet");
  }));
  EXPECT_EQ(Registrations(), 0);
  server_->Update(Node());
  wakeup_->Notify();
  EXPECT_TRUE(Advertised());
}

TEST_F(RegistrarTest, StopCancelsARegistrationUnderWay) {
  ASSERT_TRUE(kubelet_.Start().ok());
  kubelet_.DelayRegistrations(30s);
  StartPlugin();
  ASSERT_TRUE(kubelet_.WaitForRegisterCalls(1, kLong));
  const auto begin = std::chrono::steady_clock::now();
  registrar_->Stop();
  registrar_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            options_.register_deadline / 2);
}

TEST_F(RegistrarTest, AnotherPluginOnTheSocketIsAnErrorUntilItGoes) {
  ASSERT_TRUE(kubelet_.Start().ok());
  auto other = std::make_unique<ResourceServer>(
      pool_, options_.device_plugins_dir, [] {});
  ASSERT_TRUE(other->Bind().ok());
  StartPlugin();
  EXPECT_TRUE(Becomes([](const auto& state) {
    return absl::IsAlreadyExists(state.readiness);
  }));
  EXPECT_TRUE(other->SocketIntact().value());
  other.reset();
  EXPECT_TRUE(Advertised());
}

}  // namespace
}  // namespace purser::plugin
