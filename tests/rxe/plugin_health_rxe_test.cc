// SPDX-License-Identifier: Apache-2.0
//
// What happens to rxe0 is told the kubelet: how long after the kernel's event,
// with events and without, from the host's network namespace and a pod's.
// Figures go to stdout; `./dev bench` shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "rdma/discovery.h"
#include "rdma/kernel_events.h"
#include "spdlog/fmt/fmt.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/kubelet.h"
#include "tests/fakes/paths.h"
#include "tests/integration/process.h"

namespace purser::rxe {
namespace {

using namespace std::chrono_literals;
using fakes::Kubelet;
using integration::Process;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr const char* kHca = "rdma/hca";
constexpr const char* kRenamed = "rdma/renamed";
constexpr auto kGenerous = 20s;
// Longer than the debounce time.
constexpr auto kApart = 1200ms;

// More for figures than for a test.
int Rounds() {
  const char* rounds = std::getenv("PURSER_ROUNDS");
  return rounds == nullptr ? 1 : std::max(1, std::atoi(rounds));
}

bool Do(const std::string& command) {
  const bool done = std::system(command.c_str()) == 0;
  EXPECT_TRUE(done) << command;
  return done;
}

// When the kernel told of something since Arm().
class EventClock {
 public:
  EventClock()
      : sockets_{*rdma::OpenUevents(), *rdma::OpenLinkEvents()},
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}
  void Arm() { first_ = steady_clock::time_point(); }
  steady_clock::time_point first() const { return first_; }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waited[2] = {{sockets_[0].get(), POLLIN, 0},
                          {sockets_[1].get(), POLLIN, 0}};
      if (poll(waited, 2, 100) <= 0) continue;
      const auto now = steady_clock::now();
      const uint64_t events =
          rdma::TakeEvents(sockets_[0], rdma::CountUevents).value_or(0) +
          rdma::TakeEvents(sockets_[1], rdma::CountLinkEvents).value_or(0);
      auto none = steady_clock::time_point();
      if (events > 0) first_.compare_exchange_strong(none, now);
    }
  }
  const base::FileDescriptor sockets_[2];
  std::atomic<steady_clock::time_point> first_;
  std::jthread thread_;
};

class PluginHealthOnRxe : public testing::Test {
 protected:
  using Condition = std::function<bool(const Kubelet::Resource&)>;

  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "SKIPPED: no RDMA device rxe0 here; run it by "
                      "tests/rxe/run";
    std::ifstream("/sys/class/infiniband/rxe0/parent") >> netdev_;
    if (netdev_.rfind("dummy", 0) != 0)
      GTEST_SKIP() << "SKIPPED: rxe0 is on " << netdev_ << ", which is in use";
    tree_.Write("config.yaml",
                "version: v1\nrescanInterval: 1h\nresources:\n"
                "  allowOverlap: true\n"
                "  pools: [{resourceName: hca}, {resourceName: renamed, "
                "selectors: {ifNames: [purser1]}}]\n");
    ASSERT_TRUE(kubelet_.Start().ok());
  }
  void TearDown() override { plugin_.reset(); }

  void Run(std::vector<std::string> options,
           std::vector<std::string> before = {}) {
    before.insert(
        before.end(),
        {fakes::BuiltPath("plugin/purser-device-plugin"), "--config",
         tree_.path("config.yaml"), "--kubelet-root-dir", tree_.path("kubelet"),
         "--metrics-address", "127.0.0.1:0", "--node-view", "off"});
    before.insert(before.end(), options.begin(), options.end());
    plugin_ = std::make_unique<Process>(std::move(before));
    ASSERT_TRUE(kubelet_.WaitForAllocatable(kHca, kGenerous))
        << plugin_->output();
  }

  // Possible only while no other namespace is there; their end is asynchronous.
  static bool SetMode(const std::string& mode) {
    for (int i = 0; i < 100; ++i) {
      if (std::system(("rdma system set netns " + mode).c_str()) == 0)
        return true;
      std::this_thread::sleep_for(100ms);
    }
    return false;
  }

  // From the kernel's event to the list in which `condition` holds.
  void Measure(const std::string& what, const std::string& command,
               const char* resource, const Condition& condition) {
    std::this_thread::sleep_for(kApart);
    clock_.Arm();
    const size_t before = kubelet_.history().size();
    if (!Do(command)) return;
    ASSERT_TRUE(kubelet_.WaitFor(resource, condition, kGenerous))
        << what << "\n"
        << plugin_->output();
    // The last list so far is the one: the condition holds since.
    steady_clock::time_point seen;
    const std::vector<fakes::KubeletEvent> history = kubelet_.history();
    for (size_t i = before; i < history.size(); ++i)
      if (history[i].resource == resource) seen = history[i].at;
    took_[what].push_back(
        std::chrono::duration<double, std::milli>(seen - clock_.first())
            .count());
  }
  void Down() {
    Measure("netdev down", "ip link set dev " + netdev_ + " down", kHca,
            [](const auto& r) { return r.healthy.empty(); });
  }
  void Up() {
    Measure("netdev up", "ip link set dev " + netdev_ + " up", kHca,
            [](const auto& r) { return !r.healthy.empty(); });
  }
  void Remove() {
    Measure("rdma link del", "rdma link del rxe0", kHca,
            [](const auto& r) { return r.capacity() == 0; });
  }
  void Add() {
    Measure("rdma link add", "rdma link add rxe0 type rxe netdev " + netdev_,
            kHca, [](const auto& r) { return !r.healthy.empty(); });
  }
  // Possible only while it is down.
  void Rename() {
    Down();
    Measure("netdev rename", "ip link set dev " + netdev_ + " name purser1",
            kRenamed, [](const auto& r) { return r.capacity() > 0; });
    Do("ip link set dev purser1 name " + netdev_);
    ASSERT_TRUE(kubelet_.WaitFor(
        kRenamed, [](const auto& r) { return r.capacity() == 0; }, kGenerous));
    Up();
  }
  // How long it took, for `./dev bench`; no bound is held against it.
  void Print(const std::string& how) {
    for (auto& [what, times] : took_) {
      std::sort(times.begin(), times.end());
      const double median = times[times.size() / 2];
      fmt::print("{:<14} {:<22} {:7.1f} ms (median of {}; longest {:.1f})\n",
                 what, how, median, times.size(), times.back());
    }
    took_.clear();
  }

  fakes::FileTree tree_;
  std::string netdev_;
  Kubelet kubelet_{tree_.path("kubelet")};
  EventClock clock_;
  std::unique_ptr<Process> plugin_;
  std::map<std::string, std::vector<double>> took_;
};

// The part of these times that is the reading of sysfs, in this process.
TEST_F(PluginHealthOnRxe, WhatReadingSysfsTakes) {
  const rdma::Discovery discovery;
  const auto devices = discovery.Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  rdma::Discovery::Known known;
  for (const rdma::SysfsDevice& device : *devices) known[device.name] = &device;
  auto measure = [](const char* what, const std::function<void()>& read) {
    std::vector<double> times;
    for (int i = 0; i < 11; ++i) {
      const auto begin = steady_clock::now();
      read();
      times.push_back(
          std::chrono::duration<double, std::milli>(steady_clock::now() - begin)
              .count());
    }
    std::sort(times.begin(), times.end());
    fmt::print("{:<37} {:7.1f} ms (median of {}; longest {:.1f})\n", what,
               times[times.size() / 2], times.size(), times.back());
  };
  measure("a look at sysfs", [&] { discovery.Fingerprint(); });
  measure("a glance", [&] {
    const auto seen = discovery.DevicesQuickly(known);
    ASSERT_TRUE(seen.ok());
    EXPECT_EQ(seen->at(0).ports.at(0).gids, devices->at(0).ports.at(0).gids);
  });
  measure("a scan", [&] { EXPECT_TRUE(discovery.Devices().ok()); });
}

TEST_F(PluginHealthOnRxe, WithEventsTheKubeletIsTold) {
  Run({});
  for (int i = 0; i < Rounds(); ++i) {
    Down();
    Up();
    Remove();
    Add();
  }
  Rename();
  Print("with events");
}

TEST_F(PluginHealthOnRxe, WithoutEventsALookTellsIt) {
  Run({"--events", "off"});
  for (int i = 0; i < Rounds(); ++i) {
    Down();
    Up();
    Remove();
    Add();
  }
  Rename();
  Print("without events");
}

// Its uevents of character devices reach every network namespace.
TEST_F(PluginHealthOnRxe, RemovalIsToldAPodToo) {
  Do("ip netns add purser-test");
  Run({}, {"/usr/sbin/ip", "netns", "exec", "purser-test"});
  for (int i = 0; i < Rounds(); ++i) {
    Remove();
    Add();
  }
  Print("in a pod");
  plugin_->Signal(SIGTERM);
  EXPECT_EQ(plugin_->Wait(kGenerous), 0);
  EXPECT_THAT(plugin_->output(), HasSubstr("reason=other_netns"));
  plugin_.reset();
  Do("ip netns del purser-test");
}

// An open device would hold its removal up.
TEST_F(PluginHealthOnRxe, AnOpenedDeviceIsClosedWhenItIsRemoved) {
  Run({"--open-devices", "auto"});
  Down();
  Up();
  EXPECT_TRUE(plugin_->WaitForOutput("device event", kGenerous));
  for (int i = 0; i < Rounds(); ++i) {
    Remove();  // `rdma link del` returns when the device is closed
    Add();
  }
  Print("with opened devices");
}

// A device of another namespace is seen by its character device alone.
TEST_F(PluginHealthOnRxe, InExclusiveModeADeviceElsewhereStaysAdvertised) {
  ASSERT_TRUE(SetMode("exclusive"));
  Do("ip netns add purser-test");
  Run({}, {"/usr/sbin/ip", "netns", "exec", "purser-test"});
  EXPECT_FALSE(kubelet_.resource(kHca)->healthy.empty());
  plugin_->Signal(SIGTERM);
  EXPECT_EQ(plugin_->Wait(kGenerous), 0);
  EXPECT_THAT(plugin_->output(), HasSubstr("other_netns"));
  EXPECT_THAT(plugin_->output(), HasSubstr("rdma system set netns shared"));
  plugin_.reset();
  Do("ip netns del purser-test");
  EXPECT_TRUE(SetMode("shared"));
}

}  // namespace
}  // namespace purser::rxe
