// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pairs.h"

#include <atomic>
#include <cerrno>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename T>
const T& Get(const QueuePairs::CreateResult& result) {
  if (const T* value = std::get_if<T>(&result)) return *value;
  ADD_FAILURE() << "the creation ended otherwise";
  static const T kNone{};
  return kNone;
}

absl::Status StatusOf(const QueuePairs::CreateResult& result) {
  const absl::Status* status = std::get_if<absl::Status>(&result);
  return status != nullptr ? *status : absl::OkStatus();
}

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

uint64_t Admissions(FakeSidecar& sidecar, const std::string& result,
                    const std::string& reason) {
  return CountOf(sidecar.counters().admissions, result, reason);
}

TEST(QueuePairsTest, CreatesWhatWasAskedAndChargesIt) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach("app");
  const auto queue_pair = sidecar.Create(client);
  const BrokeredQueuePair::Facts& facts = queue_pair->facts();
  EXPECT_EQ(facts.owner->client, "app");
  EXPECT_EQ(facts.shape->cap.max_send_wr, 100u);
  EXPECT_EQ(facts.shape->memory.send_ring.slots, 127u);
  EXPECT_NE(facts.qp_num, 0u);
  EXPECT_EQ(queue_pair->CurrentState(), IBV_QPS_RESET);
  const uint64_t bytes = facts.shape->memory.total().total();
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(sidecar.held_bytes(), bytes);
  EXPECT_EQ(Admissions(sidecar, "granted", "fits"), 1u);
  EXPECT_EQ(sidecar.object_count(), 2) << "one cq, one qp";
  EXPECT_GE(queue_pair->work_queue().cqe(), 127u + 127u)
      << "the completion queue takes all that can be posted";

  EXPECT_EQ(sidecar.queue_pairs().Destroy(client, facts.id)->returned_bytes,
            bytes);
  EXPECT_EQ(sidecar.held_bytes(), 0u);
  EXPECT_EQ(sidecar.object_count(), 0);
  EXPECT_EQ(StatusOf(sidecar.TryCreate("nobody")).code(),
            absl::StatusCode::kUnauthenticated);
}

TEST(QueuePairsTest, IdsAreNeverUsedTwice) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach();
  const uint64_t first = sidecar.Create(client)->facts().id;
  ASSERT_TRUE(sidecar.queue_pairs().Destroy(client, first).ok());
  EXPECT_GT(sidecar.Create(client)->facts().id, first);
  EXPECT_TRUE(
      absl::IsNotFound(sidecar.queue_pairs().Destroy(client, first).status()));
}

TEST(QueuePairsTest, RefusalsReachNoDevice) {
  FakeSidecar sidecar({.budget_bytes = 200 << 10});
  const std::string client = sidecar.Attach();
  sidecar.Create(client);
  const uint64_t held = sidecar.held_bytes();
  const auto over_budget = sidecar.TryCreate(client, 1000);
  const auto over_limit = sidecar.TryCreate(client, UINT32_MAX);
  EXPECT_EQ(Get<Refusal>(over_budget).reason, RefusalReason::kBudget);
  EXPECT_EQ(Get<Refusal>(over_limit).reason, RefusalReason::kDeviceLimit);
  EXPECT_EQ(Admissions(sidecar, "refused", "budget"), 1u);
  EXPECT_EQ(Admissions(sidecar, "refused", "device_limit"), 1u);
  EXPECT_EQ(sidecar.verbs().Calls("create_cq"), 1u);
  EXPECT_EQ(sidecar.held_bytes(), held);
}

TEST(QueuePairsTest, EveryFailedCallOfACreationIsUndone) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach();
  for (const auto& [call, object] :
       {std::pair("create_cq", "cq"), std::pair("create_qp", "qp")}) {
    for (int error : {ENOMEM, EINVAL, EIO}) {
      sidecar.verbs().FailNext(call, error);
      const auto result = sidecar.TryCreate(client);
      const Refusal& refusal = Get<Refusal>(result);
      EXPECT_EQ(refusal.reason, RefusalReason::kCreateFailed);
      EXPECT_EQ(refusal.limit, rdma::ErrnoName(error));
      EXPECT_THAT(refusal.message,
                  AllOf(HasSubstr(call), Not(HasSubstr("MEMLOCK"))));
      EXPECT_NE(refusal.remedy, "");
      EXPECT_EQ(CountOf(sidecar.counters().create_failures, std::string(object),
                        rdma::ErrnoName(error)),
                1u);
      EXPECT_EQ(sidecar.held_bytes(), 0u);
      EXPECT_EQ(sidecar.object_count(), 0);
      EXPECT_EQ(sidecar.queue_pairs().count(), 0u);
    }
  }
  EXPECT_EQ(Admissions(sidecar, "refused", "create_failed"), 6u);
  EXPECT_EQ(Admissions(sidecar, "granted", "fits"), 0u);
}

TEST(QueuePairsTest, EnomemNamesMemlockOnlyWhereTheProviderPinsItsRings) {
  FakeSidecar sidecar({.mlx5 = true});
  const std::string client = sidecar.Attach();
  sidecar.SetMemlock("65536");
  sidecar.verbs().FailNext("create_qp", ENOMEM);
  const auto pinning = sidecar.TryCreate(client, 100, 1);
  EXPECT_THAT(Get<Refusal>(pinning).message,
              AllOf(HasSubstr("64 KiB"), HasSubstr("IPC_LOCK")));
  EXPECT_THAT(Get<Refusal>(pinning).remedy, HasSubstr("IPC_LOCK"));
  sidecar.verbs().FailNext("create_qp", ENOMEM);
  const auto kernel_rings = sidecar.TryCreate(client, 100, 0);
  EXPECT_THAT(Get<Refusal>(kernel_rings).message, Not(HasSubstr("MEMLOCK")));
}

TEST(QueuePairsTest, TheDevicesMaxQpHoldsAndRefusedCreationsDoNotCount) {
  FakeSidecar sidecar({.max_qp = 2});
  const std::string client = sidecar.Attach();
  sidecar.verbs().FailNext("create_qp", ENOMEM);
  sidecar.TryCreate(client);
  const auto first = sidecar.Create(client);  // as a call in flight holds it
  sidecar.Create(client);
  const auto third = sidecar.TryCreate(client);
  EXPECT_EQ(Get<Refusal>(third).reason, RefusalReason::kDeviceLimit);
  EXPECT_EQ(Get<Refusal>(third).limit, "max_qp");
  ASSERT_TRUE(sidecar.queue_pairs().Destroy(client, first->facts().id).ok());
  sidecar.Create(client);
}

TEST(QueuePairsTest, AProviderThatTakesMoreThanPredictedIsUndoneOrCharged) {
  fakes::FakeDevice greedy = fakes::RxeDevice("rxe9");
  greedy.size_queue_pair = [](ibv_qp_type, const ibv_qp_cap& asked, uint64_t,
                              fakes::FakeRings& rings) {
    rings.send_slots = 1000;
    rings.recv_slots = asked.max_recv_wr;
    rings.cap = asked;
    rings.cap.max_send_wr = 1000;
    return 0;
  };
  FakeSidecar sidecar({.budget_bytes = 400 << 10});
  sidecar.sysfs().AddDevice(fakes::SysfsRxe("rxe9", "eth9"));
  sidecar.verbs().AddDevice(greedy);
  auto device = Device::Open(sidecar.verbs(), "rxe9",
                             {.sysfs = sidecar.tree().path("sys"),
                              .dev = sidecar.tree().path("dev"),
                              .proc = sidecar.tree().path("proc")})
                    .value();
  const Admission admission(sidecar.ledger(), *sidecar.admission().budget());
  Undestroyed undestroyed(sidecar.counters(), FakeSidecar::kLookEvery);
  QueuePairs queue_pairs(sidecar.broker().clients(), admission,
                         sidecar.shared_receive_queues(), undestroyed,
                         sidecar.counters(), sidecar.tree().path("proc"));
  const QueuePairs::CreateRequest request{.client_id = sidecar.Attach(),
                                          .device = device.get(),
                                          .cap = {.max_send_wr = 100,
                                                  .max_recv_wr = 100,
                                                  .max_send_sge = 2,
                                                  .max_recv_sge = 1}};
  const auto charged = queue_pairs.Create(request);
  const auto& queue_pair = Get<std::shared_ptr<BrokeredQueuePair>>(charged);
  ASSERT_NE(queue_pair, nullptr);
  EXPECT_EQ(sidecar.held_bytes(),
            queue_pair->facts().shape->memory.total().total());
  EXPECT_GT(sidecar.held_bytes(), 256u << 10) << "as 1000 work requests take";

  const auto undone = queue_pairs.Create(request);
  EXPECT_EQ(Get<Refusal>(undone).reason, RefusalReason::kBudget);
  EXPECT_THAT(Get<Refusal>(undone).message, HasSubstr("more than"));
  EXPECT_EQ(queue_pairs.count(), 1u);
  EXPECT_EQ(sidecar.held_bytes(),
            queue_pair->facts().shape->memory.total().total());
  EXPECT_EQ(CountOf(sidecar.counters().model_mismatches, std::string("rxe9")),
            2u);
}

TEST(QueuePairsTest, OnlyTheOwnerUsesAQueuePairUnlessItIsDetached) {
  FakeSidecar sidecar;
  const std::string owner = sidecar.Attach("owner"), other = sidecar.Attach();
  const uint64_t own = sidecar.Create(owner)->facts().id;
  const uint64_t detached = sidecar.Create(owner, true)->facts().id;
  QueuePairs& queue_pairs = sidecar.queue_pairs();
  EXPECT_TRUE(queue_pairs.Find(owner, own).ok());
  const absl::Status foreign = queue_pairs.Find(other, own).status();
  EXPECT_TRUE(absl::IsPermissionDenied(foreign));
  EXPECT_THAT(Text(foreign), HasSubstr("owner"));
  EXPECT_TRUE(
      absl::IsPermissionDenied(queue_pairs.Destroy(other, own).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(queue_pairs.Find("x", own).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(queue_pairs.Find("", own).status()));
  EXPECT_TRUE(absl::IsNotFound(queue_pairs.Find(owner, 4711).status()));
  EXPECT_TRUE(queue_pairs.Find(other, detached).ok());
}

TEST(QueuePairsTest, AClientsEndEndsItsQueuePairsButNotDetachedOnes) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach(), other = sidecar.Attach();
  sidecar.Create(client);
  sidecar.Create(client);
  const auto detached = sidecar.Create(client, true);
  const auto others = sidecar.Create(other);
  sidecar.broker().Detach(client);
  EXPECT_TRUE(Eventually([&] { return sidecar.queue_pairs().count() == 2; }));
  EXPECT_TRUE(Eventually([&] { return sidecar.object_count() == 4; }));
  EXPECT_TRUE(Eventually([&] {
    return sidecar.held_bytes() ==
           detached->facts().shape->memory.total().total() +
               others->facts().shape->memory.total().total();
  }));
  EXPECT_EQ(StatusOf(sidecar.TryCreate(client)).code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(sidecar.queue_pairs().Destroy(other, detached->facts().id).ok());
}

TEST(QueuePairsTest,
     AClientThatEndsDuringACreationGetsNothingAndLeavesNothing) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach();
  sidecar.verbs().Observe([&](std::string_view call) {
    if (call == "create_qp") sidecar.broker().Detach(client);
  });
  EXPECT_EQ(StatusOf(sidecar.TryCreate(client)).code(),
            absl::StatusCode::kUnauthenticated);
  sidecar.verbs().Observe({});
  EXPECT_EQ(sidecar.queue_pairs().count(), 0u);
  EXPECT_EQ(sidecar.object_count(), 0);
  EXPECT_EQ(sidecar.held_bytes(), 0u);
}

TEST(QueuePairsTest, ListsByIdInPages) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(sidecar.Create(client)->facts().id);
  ASSERT_TRUE(sidecar.queue_pairs().Destroy(client, ids[1]).ok());
  const QueuePairs::Page first = sidecar.queue_pairs().List(0, 2);
  ASSERT_EQ(first.queue_pairs.size(), 2u);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(first.queue_pairs[1]->facts().id, ids[2]);
  const QueuePairs::Page second = sidecar.queue_pairs().List(ids[2], 2);
  ASSERT_EQ(second.queue_pairs.size(), 2u);
  EXPECT_FALSE(second.more);
  EXPECT_EQ(second.queue_pairs[0]->facts().id, ids[3]);
  EXPECT_TRUE(sidecar.queue_pairs().List(ids[4], 2).queue_pairs.empty());
}

TEST(QueuePairsTest, ALostDeviceEndsItsQueuePairsAndRefusesNewOnes) {
  FakeSidecar sidecar({.mlx5 = true});
  std::promise<std::string> lost;
  const std::string client =
      sidecar.broker()
          .Attach("app",
                  [&](const ClientEvent& event) {
                    lost.set_value(std::get<DeviceLostEvent>(event).device);
                  })
          .value();
  sidecar.Create(client);
  const auto survivor = sidecar.TryCreate(client, 100, 1);
  ASSERT_NE(Get<std::shared_ptr<BrokeredQueuePair>>(survivor), nullptr);
  sidecar.verbs().RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  auto told = lost.get_future();
  ASSERT_EQ(told.wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(told.get(), "rxe0");
  EXPECT_EQ(sidecar.queue_pairs().count(), 1u);
  EXPECT_EQ(sidecar.object_count(), 2);
  EXPECT_EQ(StatusOf(sidecar.TryCreate(client)).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace purser::sidecar
