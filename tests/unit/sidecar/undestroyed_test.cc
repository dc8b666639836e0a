// SPDX-License-Identifier: Apache-2.0
#include "sidecar/undestroyed.h"

#include "gmock/gmock.h"
#include "tests/unit/sidecar/sharing_fixture.h"

namespace purser::sidecar {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class UndestroyedTest : public SharingTest {
 protected:
  QueuePairs::CreateRequest OwnRequest() {
    QueuePairs::CreateRequest request = Request();
    request.completions = CompletionOffer::Kind::kOwn;
    return request;
  }
  uint64_t Failures(const std::string& object) {
    return CountOf(sidecar_.counters().destroy_failures, object,
                   std::string("EBUSY"));
  }
  Undestroyed::Counts counts() {
    return sidecar_.broker().undestroyed().counts();
  }
};

TEST_F(UndestroyedTest, AQueuePairStaysChargedUntilTheDeviceTakesIt) {
  const QueuePair queue_pair = Create(OwnRequest());
  const uint64_t held = sidecar_.held_bytes();
  sidecar_.verbs().FailAlways("destroy_qp", EBUSY);
  const auto ended =
      sidecar_.queue_pairs().Destroy(client_, queue_pair->facts().id);
  ASSERT_TRUE(ended.ok());
  EXPECT_TRUE(ended->not_yet_destroyed);
  EXPECT_EQ(ended->returned_bytes, 0u);
  EXPECT_EQ(sidecar_.held_bytes(), held);
  EXPECT_EQ(sidecar_.ledger().balance().leases, 1u);
  EXPECT_EQ(sidecar_.queue_pairs().count(), 0u) << "nobody may use it";
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_RESET);
  EXPECT_THAT(counts(), ElementsAre(Pair(Pair("rxe0", "qp"), 1u)));
  EXPECT_EQ(Failures("qp"), 1u);
  const uint64_t tries = sidecar_.verbs().Calls("destroy_qp");
  EXPECT_TRUE(Eventually(
      [&] { return sidecar_.verbs().Calls("destroy_qp") > tries + 2; }));
  EXPECT_EQ(sidecar_.held_bytes(), held);
  sidecar_.verbs().StopFailing("destroy_qp");
  EXPECT_TRUE(Eventually([&] { return sidecar_.held_bytes() == 0; }));
  EXPECT_TRUE(Eventually([&] { return counts().empty(); }));
  EXPECT_EQ(sidecar_.object_count(), 0);
  EXPECT_EQ(Failures("qp"), 1u) << "one object";
}

TEST_F(UndestroyedTest, ItsCompletionsAreNobodysAndItsRoomIsKept) {
  const QueuePair broken = Connected(Request()), other = Connected(Request());
  const uint64_t slots = Shared()[0].slots;
  sidecar_.verbs().HoldWire();
  ASSERT_EQ(PostAll(*broken, 5), 5u);
  sidecar_.verbs().FailAlways("destroy_qp", EBUSY);
  ASSERT_TRUE(Destroy(broken));
  EXPECT_EQ(Shared()[0].slots, slots);
  sidecar_.verbs().ReleaseWire();
  ASSERT_EQ(PostAll(*other, 3), 3u);
  EXPECT_EQ(other->Poll(16)->size(), 3u);
  sidecar_.verbs().StopFailing("destroy_qp");
  EXPECT_TRUE(Eventually([&] { return Shared()[0].slots == slots / 2; }));
}

TEST_F(UndestroyedTest, ACompletionQueueLikewise) {
  for (const bool own : {true, false}) {
    const QueuePair queue_pair = Create(own ? OwnRequest() : Request());
    const uint64_t queue = own ? queue_memory::CompletionQueueMemory(
                                     queue_memory::Provider::kRxe, {}, 254)
                                     .total()
                                     .total()
                               : Shared()[0].memory.total().total();
    sidecar_.verbs().FailAlways("destroy_cq", EBUSY);
    uint64_t returned = 0;
    const uint64_t held = sidecar_.held_bytes();
    ASSERT_TRUE(Destroy(queue_pair, &returned));
    EXPECT_EQ(returned, held - queue);
    EXPECT_EQ(sidecar_.held_bytes(), queue);
    EXPECT_THAT(counts(), ElementsAre(Pair(Pair("rxe0", "cq"), 1u)));
    sidecar_.verbs().StopFailing("destroy_cq");
    EXPECT_TRUE(Eventually([&] { return sidecar_.held_bytes() == 0; }));
  }
  EXPECT_EQ(Failures("cq"), 2u);
}

TEST_F(UndestroyedTest, ASharedReceiveQueueAndARegionLikewise) {
  const auto created = sidecar_.shared_receive_queues().Create(
      {.client_id = client_,
       .device = &sidecar_.device(),
       .wanted = {.max_wr = 10, .max_sge = 1}});
  sidecar_.tree().Write("volume/data", std::string(4096, 'x'));
  ASSERT_TRUE(
      sidecar_.regions()
          .Register(sidecar_.device(), {.client_id = client_,
                                        .path = "data",
                                        .length = 4096,
                                        .access = IBV_ACCESS_LOCAL_WRITE})
          .ok());
  const uint64_t held = sidecar_.held_bytes();
  sidecar_.verbs().FailAlways("destroy_srq", EBUSY);
  sidecar_.verbs().FailAlways("dereg_mr", EBUSY);
  sidecar_.broker().Detach(client_);
  EXPECT_TRUE(Eventually([&] { return counts().size() == 2; }));
  EXPECT_EQ(sidecar_.held_bytes(), held);
  sidecar_.verbs().StopFailing("destroy_srq");
  sidecar_.verbs().StopFailing("dereg_mr");
  EXPECT_TRUE(Eventually([&] { return counts().empty(); }));
  EXPECT_TRUE(Eventually([&] { return sidecar_.object_count() == 0; }));
  EXPECT_EQ(sidecar_.held_bytes(), 0u);
}

// Else the device could never be closed, and its removal would hang.
TEST_F(UndestroyedTest, ALostDeviceIsLetGoOf) {
  fakes::FakeVerbs& verbs = sidecar_.verbs();
  Create(Request());
  // When the queue pair ends, when it is tried again, and no more.
  verbs.FailNext("destroy_qp", EBUSY);
  verbs.FailNext("destroy_qp", EBUSY);
  sidecar_.RemoveDevice();
  EXPECT_TRUE(verbs.AwaitRemoval("rxe0"));
  EXPECT_TRUE(Eventually([&] { return sidecar_.held_bytes() == 0; }));
  EXPECT_TRUE(counts().empty());
  EXPECT_EQ(verbs.Calls("destroy_qp"), 3u);
}

class UndestroyedEndTest : public SharingTest {
 protected:
  OpenedDevice& opened(size_t index) {
    return *sidecar_.device(index).Opened().value();
  }

  Counters counters_;
  const absl::Status busy_ = rdma::StatusOf(EBUSY, "ibv_destroy");
};

TEST_F(UndestroyedEndTest, TriesALastTimeAtTheEnd) {
  int tries = 0;
  bool released = false;
  {
    Undestroyed undestroyed(counters_, std::chrono::hours(1));
    const std::shared_ptr<void> held(&counters_,
                                     [&](void*) { released = true; });
    undestroyed.Add(opened(0), "qp", busy_, [&tries, held] {
      ++tries;
      return absl::InternalError("never");
    });
  }
  EXPECT_EQ(tries, 1);
  EXPECT_TRUE(released);
}

// What one object held may be added by its end.
TEST_F(UndestroyedEndTest, WhatIsAddedWhileItLetsGoIsLetGoOfAsWell) {
  Undestroyed undestroyed(counters_, std::chrono::hours(1));
  std::shared_ptr<void> held(&counters_, [&](void*) {
    undestroyed.Add(opened(0), "cq", busy_, [this] { return busy_; });
  });
  undestroyed.Add(opened(0), "qp", busy_, [this, held] { return busy_; });
  undestroyed.Add(opened(1), "qp", busy_, [this] { return busy_; });
  held.reset();
  undestroyed.GiveUp("rxe0");
  EXPECT_THAT(undestroyed.counts(),
              ElementsAre(Pair(Pair("mlx5_0", "qp"), 1u)));
}

// A client's end may come to its objects after all else of the device ended.
TEST_F(UndestroyedEndTest, WhatComesAfterADevicesLossIsNotKept) {
  Undestroyed undestroyed(counters_, std::chrono::hours(1));
  const std::shared_ptr<OpenedDevice> lost =
      OpenedDevice::Open(sidecar_.verbs(), "rxe0", {.sysfs = "/nonexistent"},
                         OpenedDevice::Occasion::kStart)
          .value();
  lost->SetLost();
  undestroyed.GiveUp("rxe0");
  bool released = false;
  {
    const std::shared_ptr<void> held(&counters_,
                                     [&](void*) { released = true; });
    undestroyed.Add(*lost, "qp", busy_, [this, held] { return busy_; });
  }
  EXPECT_TRUE(released);
  EXPECT_TRUE(undestroyed.counts().empty());
  EXPECT_EQ(CountOf(counters_.destroy_failures, std::string("qp"),
                    std::string("EBUSY")),
            1u);
}

}  // namespace
}  // namespace purser::sidecar
