// SPDX-License-Identifier: Apache-2.0
//
// What a device's removal does to all that clients hold on it.
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/metric_family.h"
#include "sidecar/metrics.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DeviceRemovalTest : public ::testing::Test {
 protected:
  DeviceRemovalTest()
      : client_(
            sidecar_.broker()
                .Attach("app", [this](const ClientEvent&) { told_.Happen(); })
                .value()) {
    sidecar_.tree().Write("volume/buffer", std::string(4096, '\0'));
  }
  void Remove() {
    sidecar_.RemoveDevice();
    ASSERT_TRUE(sidecar_.verbs().AwaitRemoval("rxe0"));
    ASSERT_TRUE(told_.Wait());
  }
  bool BecomesReady() {
    return Eventually([&] { return sidecar_.broker().Ready().ok(); });
  }
  absl::StatusOr<std::shared_ptr<const Region>> Register() {
    return sidecar_.regions().Register(sidecar_.device(),
                                       {.client_id = client_,
                                        .path = "buffer",
                                        .length = 4096,
                                        .access = IBV_ACCESS_LOCAL_WRITE});
  }
  absl::Status StatusOfCreate() {
    const auto result = sidecar_.TryCreate(client_);
    const absl::Status* status = std::get_if<absl::Status>(&result);
    return status != nullptr ? *status : absl::OkStatus();
  }

  Occurrence told_;
  FakeSidecar sidecar_;
  std::string client_;
};

TEST_F(DeviceRemovalTest, EverythingOnTheDeviceEndsAndTheBytesReturn) {
  std::vector<std::shared_ptr<BrokeredQueuePair>> held;
  for (int i = 0; i < 20; ++i) held.push_back(sidecar_.Create(client_));
  sidecar_.Create(client_, true);
  ASSERT_TRUE(Register().ok());
  Remove();
  EXPECT_EQ(sidecar_.verbs().LiveObjectCount(), 0) << "though calls hold them";
  EXPECT_EQ(sidecar_.held_bytes(), 0u);
  EXPECT_EQ(sidecar_.queue_pairs().count(), 0u);
  EXPECT_EQ(sidecar_.regions().count(), 0u);
  EXPECT_EQ(sidecar_.regions().bytes(), 0u);
  const absl::Status ready = sidecar_.broker().Ready();
  EXPECT_TRUE(absl::IsUnavailable(ready));
  EXPECT_THAT(std::string(ready.message()),
              HasSubstr("device rxe0 was removed"));
}

TEST_F(DeviceRemovalTest, CallsOnWhatWasLostAreUnavailableUntilItIsDestroyed) {
  const auto queue_pair = sidecar_.Create(client_);
  const uint64_t id = queue_pair->facts().id;
  const uint64_t detached = sidecar_.Create(client_, true)->facts().id;
  Remove();
  const absl::Status found = sidecar_.queue_pairs().Find(client_, id).status();
  EXPECT_TRUE(absl::IsUnavailable(found)) << found;
  EXPECT_THAT(std::string(found.message()),
              AllOf(HasSubstr("queue pair"), HasSubstr("rxe0 was removed")));
  for (const absl::Status& status :
       {queue_pair->Poll(1).status(), queue_pair->work_queue().Arm(),
        queue_pair->Modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE),
        StatusOfCreate(), Register().status()})
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  ibv_send_wr send{};
  EXPECT_TRUE(
      absl::IsUnavailable(queue_pair->work_queue().PostSend({&send, 1}).ended));

  QueuePairs& queue_pairs = sidecar_.queue_pairs();
  const std::string other = sidecar_.Attach("other");
  EXPECT_TRUE(
      absl::IsPermissionDenied(queue_pairs.Destroy(other, id).status()));
  EXPECT_EQ(queue_pairs.Destroy(client_, id)->returned_bytes, 0u);
  EXPECT_TRUE(absl::IsNotFound(queue_pairs.Destroy(client_, id).status()));
  EXPECT_TRUE(absl::IsUnavailable(queue_pairs.Find(other, detached).status()));
  sidecar_.broker().Detach(client_);
  EXPECT_TRUE(Eventually([&] {
    return absl::IsNotFound(queue_pairs.Find(other, detached).status());
  })) << "remembered as long as the client";
}

TEST_F(DeviceRemovalTest, EverythingWorksAgainWhenItIsBack) {
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = sidecar_.Create(client_)->facts().id;
    Remove();
    sidecar_.ReturnDevice();
    ASSERT_TRUE(BecomesReady());
    const auto after = sidecar_.Create(client_);
    EXPECT_GT(after->facts().id, before);
    EXPECT_EQ(after->facts().shape->memory.total().total(),
              sidecar_.held_bytes());
    EXPECT_TRUE(Register().ok());
    ASSERT_TRUE(
        sidecar_.queue_pairs().Destroy(client_, after->facts().id).ok());
  }
}

TEST_F(DeviceRemovalTest, MetricsGoOnWithNothingHeld) {
  Metrics metrics(sidecar_.broker(), sidecar_.ledger(), sidecar_.admission(),
                  sidecar_.counters(), "1");
  sidecar_.Create(client_);
  const auto sum = [&](const std::string& name) {
    double total = -1;
    for (const auto& family : metrics.Collect()) {
      if (family.name != name) continue;
      total = 0;
      for (const auto& metric : family.metric) total += metric.gauge.value;
    }
    return total;
  };
  EXPECT_GT(sum("purser_queue_memory_bytes"), 0);
  EXPECT_EQ(sum("purser_device_open"), 1);
  Remove();
  EXPECT_EQ(sum("purser_queue_memory_bytes"), 0);
  EXPECT_EQ(sum("purser_queue_pairs"), 0);
  EXPECT_EQ(sum("purser_device_open"), 0);
}

TEST_F(DeviceRemovalTest, ACreationThatItOvertakesIsUndone) {
  for (const char* during : {"create_cq", "create_qp"}) {
    SCOPED_TRACE(during);
    std::once_flag once;
    sidecar_.verbs().Observe([&](std::string_view call) {
      if (call != during) return;
      std::call_once(once, [&] {
        sidecar_.RemoveDevice();
        EXPECT_TRUE(
            Eventually([&] { return !sidecar_.device().Opened().ok(); }));
      });
    });
    EXPECT_TRUE(absl::IsUnavailable(StatusOfCreate()));
    sidecar_.verbs().Observe({});
    EXPECT_TRUE(sidecar_.verbs().AwaitRemoval("rxe0"));
    EXPECT_EQ(sidecar_.held_bytes(), 0u);
    sidecar_.ReturnDevice();
    ASSERT_TRUE(BecomesReady());
  }
}

TEST_F(DeviceRemovalTest, ARegistrationThatItOvertakesIsUndone) {
  std::once_flag once;
  sidecar_.verbs().Observe([&](std::string_view call) {
    if (call != "reg_mr") return;
    std::call_once(once, [&] {
      sidecar_.RemoveDevice();
      EXPECT_TRUE(Eventually([&] { return !sidecar_.device().Opened().ok(); }));
    });
  });
  EXPECT_TRUE(absl::IsUnavailable(Register().status()));
  sidecar_.verbs().Observe({});
  EXPECT_TRUE(sidecar_.verbs().AwaitRemoval("rxe0"));
  EXPECT_EQ(sidecar_.regions().count(), 0u);
}

// Clients that create, post, poll, register and destroy all the time, while the
// device goes and comes.
TEST_F(DeviceRemovalTest, RemovalsRaceWithEverything) {
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> created = 0, refused = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string client = sidecar_.Attach();
      while (!stop) {
        const auto result = sidecar_.TryCreate(client, 20);
        const auto* queue_pair =
            std::get_if<std::shared_ptr<BrokeredQueuePair>>(&result);
        if (queue_pair == nullptr) {
          ++refused;
          continue;
        }
        ++created;
        ibv_recv_wr receive{};
        (void)(*queue_pair)
            ->Modify({.qp_state = IBV_QPS_INIT, .port_num = 1},
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                         IBV_QP_ACCESS_FLAGS);
        (*queue_pair)->work_queue().PostReceive({&receive, 1});
        (void)(*queue_pair)->work_queue().Arm();
        (void)(*queue_pair)->Fetch(16);
        (*queue_pair)->CurrentState();
        (void)Register();
        if (i % 2 == 0)
          (void)sidecar_.queue_pairs().Destroy(client,
                                               (*queue_pair)->facts().id);
        else if (sidecar_.queue_pairs().count() > 50)
          sidecar_.queue_pairs().EndClient(client);
      }
    });
  }
  for (int round = 0; round < 10; ++round) {
    const uint64_t before = created;
    ASSERT_TRUE(Eventually([&] { return created >= before + 20; }));
    sidecar_.RemoveDevice();
    ASSERT_TRUE(sidecar_.verbs().AwaitRemoval("rxe0"));
    EXPECT_EQ(sidecar_.verbs().LiveObjectCount(), 0);
    EXPECT_TRUE(Eventually([&] { return sidecar_.held_bytes() == 0; }));
    sidecar_.ReturnDevice();
    ASSERT_TRUE(BecomesReady());
  }
  stop = true;
  threads.clear();
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace purser::sidecar
