// SPDX-License-Identifier: Apache-2.0
//
// A sidecar without its process: fake devices, sysfs, proc and shared volume,
// a real budget, ledger, admission and broker. Several on one fabric reach each
// other, as the sidecars of several pods.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "ledger/ledger.h"
#include "sidecar/admission.h"
#include "sidecar/broker.h"
#include "sidecar/budget.h"
#include "sidecar/counters.h"
#include "sidecar/device.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/fakes/file_tree.h"

namespace purser::sidecar {

struct FakeSidecarOptions {
  uint64_t budget_bytes = 64 << 20;
  uint64_t max_clients = 256;
  bool mlx5 = false;  // a second device, mlx5_0
  int max_qp = 0;     // of rxe0; 0: its own
  std::string ipv4 = "192.0.2.1";
  std::shared_ptr<fakes::VerbsFabric> fabric = fakes::NewFabric();
};

class FakeSidecar {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{2};

  explicit FakeSidecar(FakeSidecarOptions options = {})
      : verbs_(options.fabric), sysfs_(tree_) {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    fakes::FakeDevice rxe = fakes::RxeDevice("rxe0", options.ipv4);
    if (options.max_qp > 0) rxe.attr.max_qp = options.max_qp;
    verbs_.AddDevice(std::move(rxe));
    if (options.mlx5) {
      sysfs_.AddDevice(fakes::SysfsMlx5Vf("mlx5_0", "eth1"));
      verbs_.AddDevice(fakes::Mlx5Device("mlx5_0", options.ipv4));
    }
    tree_.Directory("volume");
    SetMemlock("unlimited");
    devices_.push_back(OpenDevice("rxe0"));
    if (options.mlx5) devices_.push_back(OpenDevice("mlx5_0"));

    ledger::Ledger::Format(ledger_state_);
    BudgetInputs inputs;
    inputs.explicit_bytes = options.budget_bytes;
    admission_ =
        std::make_unique<Admission>(ledger(), DetermineBudget(inputs).value());
    std::vector<Device*> devices;
    for (const auto& device : devices_) devices.push_back(device.get());
    broker_ = Broker::Create(devices, *admission_, counters_,
                             {.max_clients = options.max_clients,
                              .shared_volume = tree_.path("volume"),
                              .proc_root = tree_.path("proc"),
                              .times = {.look_every = kLookEvery},
                              .destroy_again_every = kLookEvery})
                  .value();
  }
  ~FakeSidecar() {
    broker_.reset();
    EXPECT_EQ(held_bytes(), 0u);
    devices_.clear();
    EXPECT_EQ(verbs_.LiveObjectCount(), 0);
  }

  fakes::FakeVerbs& verbs() { return verbs_; }
  fakes::FileTree& tree() { return tree_; }
  fakes::FakeSysfs& sysfs() { return sysfs_; }
  Counters& counters() { return counters_; }
  Broker& broker() { return *broker_; }
  QueuePairs& queue_pairs() { return broker_->queue_pairs(); }
  SharedReceiveQueues& shared_receive_queues() {
    return broker_->shared_receive_queues();
  }
  Regions& regions() { return broker_->regions(); }
  Device& device(size_t index = 0) { return *devices_.at(index); }
  Admission& admission() { return *admission_; }
  ledger::Ledger ledger() { return ledger::Ledger(&ledger_state_); }
  uint64_t held_bytes() { return ledger().balance().held.total(); }
  // What is made for clients: queue pairs, completion and shared receive
  // queues, memory regions.
  int object_count() {
    std::map<std::string, int> live = verbs_.LiveObjects();
    return live["qp"] + live["cq"] + live["srq"] + live["mr"];
  }

  // rxe0 goes, as soft-RoCE does; the removal waits until it is closed.
  void RemoveDevice() {
    verbs_.RemoveDevice("rxe0", fakes::Removal::kZombie);
    sysfs_.RemoveDevice("rxe0");
  }
  void ReturnDevice() {
    verbs_.AddDevice(fakes::RxeDevice("rxe0"));
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
  }

  // `limit` as in /proc/self/limits; without CAP_IPC_LOCK.
  void SetMemlock(const std::string& limit) {
    tree_.Write("proc/self/limits",
                "Limit                     Soft Limit           Hard Limit     "
                "      Units     \n"
                "Max locked memory         " +
                    limit + "                " + limit +
                    "                bytes     \n");
    tree_.Write("proc/self/status",
                "Name:\tpurser\nCapEff:\t0000000000000000\n");
  }

  std::string Attach(const std::string& name = "client") {
    return broker_->Attach(name, [](const ClientEvent&) {}).value();
  }

  QueuePairs::CreateResult TryCreate(const std::string& client_id,
                                     uint32_t send_wr = 100,
                                     size_t device_index = 0,
                                     bool detached = false) {
    return queue_pairs().Create({.client_id = client_id,
                                 .device = &device(device_index),
                                 .cap = {.max_send_wr = send_wr,
                                         .max_recv_wr = 100,
                                         .max_send_sge = 2,
                                         .max_recv_sge = 1},
                                 .detached = detached});
  }
  std::shared_ptr<BrokeredQueuePair> Create(const std::string& client_id,
                                            bool detached = false) {
    QueuePairs::CreateResult result = TryCreate(client_id, 100, 0, detached);
    EXPECT_TRUE(
        std::holds_alternative<std::shared_ptr<BrokeredQueuePair>>(result));
    return std::get<std::shared_ptr<BrokeredQueuePair>>(std::move(result));
  }

 private:
  std::unique_ptr<Device> OpenDevice(const std::string& name) {
    return Device::Open(verbs_, name,
                        {.sysfs = tree_.path("sys"),
                         .dev = tree_.path("dev"),
                         .proc = tree_.path("proc")})
        .value();
  }

  fakes::FakeVerbs verbs_;
  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_;
  Counters counters_;
  ledger::LedgerState ledger_state_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<Broker> broker_;
};

}  // namespace purser::sidecar
