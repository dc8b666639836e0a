// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "plugin/pool_resource.h"
#include "plugin/registrar.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/kubelet.h"

namespace purser::plugin {

inline constexpr const char* kHca = "rdma/hca";
// Only a failing test waits that long; a loaded machine may take some of it.
inline constexpr std::chrono::seconds kLong{60};

inline std::shared_ptr<const Snapshot> NodeWithOneDevice() {
  auto snapshot = std::make_shared<Snapshot>();
  Device device;
  device.sysfs.name = "rxe0";
  device.sysfs.uverbs = "uverbs0";
  snapshot->devices = {device};
  snapshot->pools[kHca] = {0};
  return snapshot;
}

// A plugin of one resource with three units, as far as the registrar goes: its
// server and the registrar itself.
class TestPlugin {
 public:
  explicit TestPlugin(RegistrarOptions options)
      : options_(std::move(options)),
        server_(std::make_shared<ResourceServer>(
            pool_, options_.identity,
            [wakeup = wakeup_] { wakeup->Notify(); })) {}
  ~TestPlugin() { Stop(); }

  void Know() { server_->Update(NodeWithOneDevice()); }
  absl::Status Start() {
    registrar_ = std::make_unique<Registrar>(
        options_, Registrar::Servers{server_}, wakeup_);
    const absl::Status status = registrar_->Prepare();
    if (status.ok()) registrar_->Start();
    return status;
  }
  void Stop() {
    if (registrar_ != nullptr) registrar_->Stop();
    server_->Stop(std::chrono::system_clock::now() + std::chrono::seconds(1));
  }
  Registrar::ResourceState State() const {
    return registrar_->States().front();
  }
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

  Registrar& registrar() { return *registrar_; }
  ResourceServer& server() { return *server_; }
  Wakeup& wakeup() { return *wakeup_; }

 private:
  const RegistrarOptions options_;
  const std::shared_ptr<Wakeup> wakeup_ = *Wakeup::Create();
  PoolResource pool_{PoolConfig{.rdma_hca_max = 3}};
  const std::shared_ptr<ResourceServer> server_;
  std::unique_ptr<Registrar> registrar_;
};

class RegistrarTest : public ::testing::Test {
 protected:
  RegistrarTest() {
    using namespace std::chrono_literals;
    UseKubelet({});
    options_.device_plugins_dir = kubelet_->device_plugins_dir().string();
    options_.identity = {"test", 1};
    // Far longer than a loaded machine takes; tests of the time-out shorten it.
    options_.stream_timeout = 5s;
    options_.first_retry = 5ms;
    options_.longest_retry = 50ms;
    options_.kubelet_absence = 50ms;
  }
  // Not running yet.
  void UseKubelet(fakes::KubeletOptions options) {
    kubelet_ = std::make_unique<fakes::Kubelet>(
        tree_.root() / "kubelet", fakes::Kubelet::Observer(), options);
  }
  void UsePluginsRegistry(RegistrationMode mode) {
    options_.mode = mode;
    options_.plugins_registry_dir = kubelet_->plugins_registry_dir().string();
  }
  std::unique_ptr<TestPlugin> StartPlugin() { return StartPlugin(options_); }
  static std::unique_ptr<TestPlugin> StartPlugin(RegistrarOptions options) {
    auto plugin = std::make_unique<TestPlugin>(std::move(options));
    plugin->Know();
    const absl::Status status = plugin->Start();
    EXPECT_TRUE(status.ok()) << status;
    return plugin;
  }
  bool Advertised() { return kubelet_->WaitForAllocatable(kHca, kLong); }
  bool WaitFor(
      const std::function<bool(const fakes::Kubelet::Resource&)>& condition,
      std::chrono::milliseconds timeout = kLong) {
    return kubelet_->WaitFor(kHca, condition, timeout);
  }
  bool RegisteredAgain(int registrations) {
    return WaitFor([&](const auto& r) {
      return r.registrations >= registrations && r.connected &&
             r.healthy.size() == 3;
    });
  }
  int Registrations() {
    const auto resource = kubelet_->resource(kHca);
    return resource ? resource->registrations : 0;
  }

  fakes::FileTree tree_;
  std::unique_ptr<fakes::Kubelet> kubelet_;
  RegistrarOptions options_;
};

}  // namespace purser::plugin
