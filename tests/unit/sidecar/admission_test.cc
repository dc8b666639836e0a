// SPDX-License-Identifier: Apache-2.0
#include "sidecar/admission.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "queue_memory/fit.h"

namespace purser::sidecar {
namespace {

using queue_memory::Provider;
using queue_memory::QueuePairRequest;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kAll = UINT32_MAX;

DeviceTraits Rxe() {
  return {.name = "rxe0",
          .provider = Provider::kRxe,
          .limits = {.max_qp_wr = 16384, .max_sge = 32, .max_cqe = 32767},
          .max_qp = 65536};
}

DeviceTraits Mlx5() {
  return {.name = "mlx5_0",
          .provider = Provider::kMlx5,
          .limits = {.max_qp_wr = 32768, .max_sge = 30, .max_cqe = 4194303},
          .max_qp = 131072};
}

DeviceTraits Unknown() {
  DeviceTraits device = Rxe();
  device.name = "acme0";
  device.provider = Provider::kUnknown;
  return device;
}

QueuePairRequest Rc(uint32_t send_wr, uint32_t send_sge, uint32_t recv_wr,
                    uint32_t recv_sge, uint32_t inline_data = 0) {
  return {.max_send_wr = send_wr,
          .max_send_sge = send_sge,
          .max_inline_data = inline_data,
          .max_recv_wr = recv_wr,
          .max_recv_sge = recv_sge};
}

uint64_t PredictedBytes(const DeviceTraits& device,
                        const QueuePairRequest& request) {
  return queue_memory::QueuePairWithCompletionQueueMemory(
             device.provider, device.limits, request)
      .memory.total()
      .total();
}

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() { ledger::Ledger::Format(state_); }

  Admission WithBudget(BudgetInputs inputs) {
    absl::StatusOr<Budget> budget = DetermineBudget(inputs);
    EXPECT_TRUE(budget.ok()) << budget.status();
    return Admission(ledger_, *budget);
  }
  Admission WithPluginBytes(uint64_t bytes) {
    BudgetInputs inputs;
    inputs.plugin_bytes = std::to_string(bytes);
    return WithBudget(inputs);
  }

  Refusal Refused(const Admission& admission, const DeviceTraits& device,
                  const QueuePairRequest& request,
                  uint64_t live_queue_pairs = 0) {
    const ledger::Charge before = ledger_.balance().held;
    auto result = admission.Admit(device, request, live_queue_pairs);
    EXPECT_EQ(ledger_.balance().held, before) << "a refusal costs nothing";
    if (auto* refusal = std::get_if<Refusal>(&result)) return *refusal;
    ADD_FAILURE() << "was granted";
    return {};
  }
  Grant Granted(const Admission& admission, const DeviceTraits& device,
                const QueuePairRequest& request) {
    auto result = admission.Admit(device, request, 0);
    if (auto* grant = std::get_if<Grant>(&result)) return std::move(*grant);
    ADD_FAILURE() << std::get<Refusal>(result).message;
    return {};
  }

  ledger::LedgerState state_;
  ledger::Ledger ledger_{&state_};
};

TEST_F(AdmissionTest, GrantHoldsWhatTheModelPredicts) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  {
    const Grant grant = Granted(admission, Rxe(), Rc(4096, 8, 4096, 1));
    EXPECT_EQ(grant.completion.cqe, 16382u) << "one completion for every slot";
    EXPECT_EQ(grant.predicted.send.node, 4198400u);
    EXPECT_EQ(ledger_.balance().held.total(), grant.predicted.total().total());
    EXPECT_EQ(grant.lease.charge(), ledger_.balance().held);
    EXPECT_EQ(ledger_.balance().leases, 1u);
  }
  EXPECT_EQ(ledger_.balance().held.total(), 0u);
  EXPECT_EQ(ledger_.balance().leases, 0u);
}

TEST_F(AdmissionTest, GrantsUntilTheBudgetIsFullAndNotAByteMore) {
  const uint64_t each = PredictedBytes(Rxe(), Rc(256, 4, 256, 1));
  for (const auto& [budget, expected] :
       {std::pair{3 * each, 3}, std::pair{3 * each - 1, 2}}) {
    const Admission admission = WithPluginBytes(budget);
    std::vector<Grant> grants;
    for (;;) {
      auto result = admission.Admit(Rxe(), Rc(256, 4, 256, 1), grants.size());
      if (!std::holds_alternative<Grant>(result)) break;
      grants.push_back(std::get<Grant>(std::move(result)));
    }
    EXPECT_EQ(grants.size(), static_cast<size_t>(expected));
  }
}

TEST_F(AdmissionTest, OneMoreThanWasAllottedIsRefused) {
  BudgetInputs inputs;
  inputs.plugin_bytes = std::to_string(64 * kMiB);
  inputs.plugin_queue_pairs = "2";
  const Admission admission = WithBudget(inputs);
  Grant first = Granted(admission, Rxe(), Rc(16, 1, 16, 1));
  {
    const Grant second = Granted(admission, Rxe(), Rc(16, 1, 16, 1));
    const Refusal refusal = Refused(admission, Rxe(), Rc(16, 1, 16, 1));
    EXPECT_EQ(refusal.reason, RefusalReason::kQueuePairCount);
    EXPECT_STREQ(RefusalReasonName(refusal.reason), "qp_count");
    EXPECT_EQ(refusal.asked_value, 3u);
    EXPECT_EQ(refusal.limit_value, 2u);
    EXPECT_EQ(refusal.limit, "PURSER_QUEUE_PAIRS");
    EXPECT_THAT(refusal.message,
                AllOf(HasSubstr("queue pair number 3 of the 2 that this "
                                "container was allotted"),
                      HasSubstr("request more units of rdma/qp")));
  }
  Granted(admission, Rxe(), Rc(16, 1, 16, 1));
}

TEST_F(AdmissionTest, UnderPressureNothingGrowsThatItsPayerWouldPay) {
  Admission admission = WithPluginBytes(64 * kMiB);
  for (const PressureState state :
       {PressureState::kTight, PressureState::kCritical}) {
    admission.SetPressure(PressureScope::kNode, {state, "8 of 100 MiB left"});
    const Refusal refusal = Refused(admission, Rxe(), Rc(16, 1, 16, 1));
    EXPECT_EQ(refusal.reason, RefusalReason::kPressure);
    EXPECT_STREQ(RefusalReasonName(refusal.reason), "pressure");
    EXPECT_THAT(refusal.message,
                AllOf(HasSubstr("bytes that the node pays, whose memory is"),
                      HasSubstr(PressureStateName(state)),
                      HasSubstr("8 of 100 MiB left"), HasSubstr("other pods")));
    EXPECT_THAT(refusal.limit, HasSubstr("node memory: "));
  }
  admission.SetPressure(PressureScope::kNode, {});
  Granted(admission, Rxe(), Rc(16, 1, 16, 1));
  admission.SetPressure(PressureScope::kContainer,
                        {PressureState::kTight, "90 % in use"});
  // Its rings are the container's.
  const Refusal refusal = Refused(admission, Mlx5(), Rc(16, 1, 16, 1));
  EXPECT_THAT(refusal.message,
              AllOf(HasSubstr("container pays"), HasSubstr("90 % in use"),
                    HasSubstr("higher memory limit")));
}

TEST_F(AdmissionTest, ABudgetThatIsLoweredHoldsFromThenOn) {
  Admission admission = WithPluginBytes(64 * kMiB);
  const Grant grant = Granted(admission, Rxe(), Rc(4096, 8, 4096, 1));
  BudgetInputs inputs;
  inputs.plugin_bytes = std::to_string(kMiB);
  admission.SetBudget(DetermineBudget(inputs).value());
  EXPECT_EQ(admission.OvercommittedBytes(),
            ledger_.balance().held.total() - kMiB);
  const Refusal refusal = Refused(admission, Rxe(), Rc(16, 1, 16, 1));
  EXPECT_EQ(refusal.budget_bytes, kMiB);
  EXPECT_THAT(refusal.message, HasSubstr("0 left"));
}

TEST_F(AdmissionTest, RefusalShowsTheWholeArithmetic) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  ASSERT_TRUE(ledger_.Reserve({.node = 60 * kMiB}).ok());
  const Refusal refusal = Refused(admission, Rxe(), Rc(4096, 8, 4096, 1));

  EXPECT_EQ(refusal.reason, RefusalReason::kBudget);
  EXPECT_EQ(refusal.bound, BudgetSource::kPlugin);
  const uint64_t needed = refusal.needed.total().total();
  EXPECT_EQ(refusal.needed_bytes, needed);
  EXPECT_EQ(refusal.used_bytes, 60 * kMiB);
  EXPECT_EQ(refusal.budget_bytes, 64 * kMiB);
  EXPECT_THAT(
      refusal.message,
      AllOf(HasSubstr("queue pair RC 4096/8 send, 4096/1 receive on rxe0 "
                      "needs " +
                      base::FormatCount(needed) + " bytes"),
            HasSubstr("send ring 4,198,400 + receive ring 528,384 + "
                      "completion queue " +
                      base::FormatCount(refusal.needed.completion.node) +
                      " + arrays 0 + overhead " +
                      base::FormatCount(refusal.needed.overhead.total()) + ")"),
            HasSubstr("62,914,560 of 67,108,864 bytes are in use (bound: "
                      "plugin, PURSER_QUEUE_MEMORY_BYTES), 4,194,304 left"),
            HasSubstr("the largest max_send_wr that fits is " +
                      std::to_string(refusal.largest_max_send_wr)),
            Not(HasSubstr("\n"))));
  EXPECT_THAT(
      refusal.remedy,
      AllOf(HasSubstr("request " +
                      std::to_string((needed - 4 * kMiB + kMiB - 1) / kMiB) +
                      " more units of rdma/wqe-mib"),
            HasSubstr("or ask for max_send_wr <= "),
            HasSubstr("destroy queue pairs")));
}

TEST_F(AdmissionTest, TheLargestSendWrThatItNamesFitsAndOneMoreDoesNot) {
  for (const DeviceTraits& device : {Rxe(), Mlx5(), Unknown()}) {
    SCOPED_TRACE(device.name);
    const Admission admission = WithPluginBytes(1500 * 1000);
    QueuePairRequest request = Rc(4096, 8, 512, 1);
    const Refusal refusal = Refused(admission, device, request);
    ASSERT_GT(refusal.largest_max_send_wr, 0u);
    ASSERT_LT(refusal.largest_max_send_wr, 4096u);
    request.max_send_wr = refusal.largest_max_send_wr + 1;
    Refused(admission, device, request);
    request.max_send_wr = refusal.largest_max_send_wr;
    Granted(admission, device, request);
  }
}

TEST_F(AdmissionTest, SaysWhenNoSendQueueFits) {
  const Admission admission = WithPluginBytes(64 * 1024);
  const Refusal refusal = Refused(admission, Rxe(), Rc(16, 1, 4096, 1));
  EXPECT_EQ(refusal.largest_max_send_wr, 0u);
  EXPECT_THAT(refusal.message, HasSubstr("no max_send_wr fits"));
  EXPECT_THAT(refusal.remedy, HasSubstr("max_recv_wr"));
  EXPECT_THAT(refusal.remedy, Not(HasSubstr("destroy")))
      << "there is none to destroy";
}

TEST_F(AdmissionTest, AReceiveOnlyQueuePairIsToldToShrinkItsReceives) {
  const Admission admission = WithPluginBytes(64 * 1024);
  const Refusal refusal = Refused(admission, Rxe(), Rc(0, 0, 4096, 1));
  EXPECT_EQ(refusal.largest_max_send_wr, 0u);
  EXPECT_THAT(refusal.message, HasSubstr("no send queue to shrink"));
  EXPECT_THAT(refusal.remedy, HasSubstr("smaller max_recv_wr"));
}

TEST_F(AdmissionTest, AContainerBoundCountsContainerBytesAlone) {
  BudgetInputs inputs;
  inputs.explicit_bytes = 64 * kMiB;
  inputs.cgroup = base::CgroupMemory{.version = 2,
                                     .path = "/sys/fs/cgroup",
                                     .max_bytes = 1 * kMiB,
                                     .max_origin = "/sys/fs/cgroup/memory.max"};
  const Admission admission = WithBudget(inputs);
  const Refusal refusal = Refused(admission, Mlx5(), Rc(4096, 8, 4096, 1));
  EXPECT_EQ(refusal.bound, BudgetSource::kCgroup);
  EXPECT_EQ(refusal.budget_bytes, kMiB / 2);
  EXPECT_EQ(refusal.needed_bytes, refusal.needed.total().container);
  EXPECT_THAT(
      refusal.message,
      AllOf(HasSubstr("container-charged bytes (send ring 2,097,152 + receive "
                      "ring 65,536"),
            HasSubstr("(bound: cgroup, half of /sys/fs/cgroup/memory.max)")));
  // Twice the shortfall, since half of the limit is the budget.
  EXPECT_THAT(
      refusal.remedy,
      HasSubstr("raise the memory limit of the sidecar's container by " +
                base::FormatCount(2 * (refusal.needed_bytes - kMiB / 2)) +
                " bytes"));

  // Node bytes are not that bound's business.
  Granted(admission, Rxe(), Rc(4096, 8, 4096, 1));
}

TEST_F(AdmissionTest, TheRemedyFitsTheBound) {
  BudgetInputs inputs;
  inputs.explicit_bytes = 1 * kMiB;
  EXPECT_THAT(Refused(WithBudget(inputs), Mlx5(), Rc(4096, 8, 4096, 1)).remedy,
              HasSubstr("raise --budget by "));
  inputs.explicit_bytes = 64 * kMiB;
  inputs.pins_rings = true;
  inputs.memlock = base::MemlockLimit{.soft_bytes = kMiB};
  const Refusal refusal =
      Refused(WithBudget(inputs), Mlx5(), Rc(4096, 8, 4096, 1));
  EXPECT_EQ(refusal.bound, BudgetSource::kMemlock);
  EXPECT_THAT(refusal.remedy,
              AllOf(HasSubstr("IPC_LOCK"), HasSubstr("RLIMIT_MEMLOCK")));
}

struct BadRequest {
  QueuePairRequest request;
  RefusalReason reason;
  const char* limit;
  const char* message;
};

TEST_F(AdmissionTest, BadRequestsAreRefusedByNameBeforeTheBudget) {
  const Admission admission = WithPluginBytes(1);  // nothing would fit
  const DeviceTraits rxe = Rxe();
  QueuePairRequest raw = Rc(16, 1, 16, 1);
  raw.type = queue_memory::QueuePairType::kRawPacket;
  for (const BadRequest& bad : {
           BadRequest{Rc(0, 0, 0, 0), RefusalReason::kInvalid, "",
                      "max_send_wr and max_recv_wr are both 0"},
           BadRequest{Rc(0, 1, 0, 1), RefusalReason::kInvalid, "",
                      "max_send_wr and max_recv_wr are both 0"},
           BadRequest{Rc(16, 0, 16, 1), RefusalReason::kInvalid, "",
                      "max_send_sge is 0"},
           BadRequest{Rc(16, 1, 16, 0), RefusalReason::kInvalid, "",
                      "max_recv_sge is 0"},
           BadRequest{Rc(16385, 1, 16, 1), RefusalReason::kDeviceLimit,
                      "max_qp_wr",
                      "max_send_wr 16,385 is more than the device's max_qp_wr "
                      "of 16,384; ask for max_send_wr <= 16384"},
           BadRequest{Rc(16, 1, kAll, 1), RefusalReason::kDeviceLimit,
                      "max_qp_wr", "max_recv_wr 4,294,967,295"},
           BadRequest{Rc(16, kAll, 16, 1), RefusalReason::kDeviceLimit,
                      "max_sge", "max_send_sge 4,294,967,295"},
           BadRequest{Rc(16, 1, 16, 33), RefusalReason::kDeviceLimit, "max_sge",
                      "max_recv_sge 33"},
           BadRequest{Rc(16384, 1, 16384, 1), RefusalReason::kDeviceLimit,
                      "max_cqe", "max_send_wr + max_recv_wr 32,768"},
           BadRequest{Rc(16, 1, 16, 1, kAll), RefusalReason::kDeviceLimit,
                      "max_inline_data", "max_inline_data 4,294,967,295"},
           BadRequest{Rc(kAll, kAll, kAll, kAll, kAll),
                      RefusalReason::kDeviceLimit, "max_qp_wr",
                      "max_send_wr 4,294,967,295"},
           BadRequest{raw, RefusalReason::kDeviceLimit, "queue pair type",
                      "has no queue pairs of this type; ask for RC, UC or UD"},
       }) {
    SCOPED_TRACE(bad.message);
    const Refusal refusal = Refused(admission, rxe, bad.request);
    EXPECT_EQ(refusal.reason, bad.reason) << refusal.message;
    EXPECT_EQ(refusal.limit, bad.limit);
    EXPECT_THAT(refusal.message, HasSubstr(bad.message));
    EXPECT_THAT(refusal.message, HasSubstr(refusal.remedy));
    EXPECT_THAT(refusal.remedy, Not(IsEmpty()));
  }
}

TEST_F(AdmissionTest, ASendQueueOrAReceiveQueueAloneIsFine) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  Granted(admission, Rxe(), Rc(16, 1, 0, 0));
  Granted(admission, Rxe(), Rc(0, 0, 16, 1));
  Granted(admission, Rxe(), Rc(16, 0, 0, 0, 64));  // inline data alone
}

TEST_F(AdmissionTest, WithASharedReceiveQueueTheReceiveSideIsNotLookedAt) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  QueuePairRequest request = Rc(16, 1, kAll, kAll);
  request.uses_srq = true;
  Granted(admission, Rxe(), request);
  request = Rc(0, 0, 0, 0);
  request.uses_srq = true;
  Granted(admission, Rxe(), request);
}

TEST_F(AdmissionTest, TheDevicesNumberOfQueuePairsIsALimit) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  DeviceTraits device = Rxe();
  device.max_qp = 3;
  Granted(admission, device, Rc(16, 1, 16, 1));
  const Refusal refusal = Refused(admission, device, Rc(16, 1, 16, 1), 3);
  EXPECT_EQ(refusal.reason, RefusalReason::kDeviceLimit);
  EXPECT_EQ(refusal.limit, "max_qp");
  EXPECT_EQ(refusal.limit_value, 3u);
  EXPECT_EQ(refusal.asked_value, 4u);
  device.max_qp = 0;  // not known
  EXPECT_TRUE(std::holds_alternative<Grant>(
      admission.Admit(device, Rc(16, 1, 16, 1), 1'000'000)));
}

TEST_F(AdmissionTest, TheProvidersJointRulesAreNamed) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  const Refusal ring = Refused(admission, Mlx5(), Rc(16384, 1, 16, 1));
  EXPECT_EQ(ring.reason, RefusalReason::kDeviceLimit);
  EXPECT_EQ(ring.limit, "send ring size");
  EXPECT_THAT(ring.remedy, HasSubstr("ask for max_send_wr <= 8192"));
  const Refusal wqe = Refused(admission, Mlx5(), Rc(16, 30, 16, 1, 2000));
  EXPECT_EQ(wqe.limit, "send WQE size");
  EXPECT_THAT(wqe.message, HasSubstr("bytes is more than the 1,024 that the "
                                     "provider mlx5 takes"));
}

TEST_F(AdmissionTest, WhatOtherProvidersRefuseIsNamed) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  QueuePairRequest sharing = Rc(16, 1, 0, 0);
  sharing.uses_srq = true;
  const struct {
    Provider provider;
    QueuePairRequest request;
    const char* message;
  } cases[] = {
      {Provider::kEfa, Rc(16, 1, 16, 1),
       "the provider efa has no queue pairs of this type; ask for UD"},
      {Provider::kMana, sharing,
       "the provider mana has no shared receive queues; ask for a receive "
       "queue of its own"},
      {Provider::kSiw, Rc(16, 1, 0, 0),
       "0 is below the least max_recv_wr of 1 that the provider siw takes; ask "
       "for at least 1"},
      {Provider::kIrdma, Rc(16384, 1, 16, 1),
       "send ring size 65,536 quanta is more than the 32,768 that the provider "
       "irdma takes; ask for max_send_wr <= "},
      {Provider::kIrdma, Rc(16, 1, 32768, 1),
       "receive ring size 65,536 quanta is more than the 32,768 that the "
       "provider irdma takes; ask for a smaller max_recv_wr"},
  };
  for (const auto& c : cases) {
    const Refusal refusal = Refused(
        admission, {.name = "other0", .provider = c.provider}, c.request);
    EXPECT_EQ(refusal.reason, RefusalReason::kDeviceLimit);
    EXPECT_THAT(refusal.message, HasSubstr(c.message));
  }
}

TEST_F(AdmissionTest, DevicesThatTellNoLimitsStillRefuseNonsense) {
  const Admission admission = WithPluginBytes(64 * kMiB);
  for (DeviceTraits device : {Rxe(), Mlx5(), Unknown()}) {
    device.limits = {};
    device.max_qp = 0;
    const Refusal refusal =
        Refused(admission, device, Rc(kAll, kAll, kAll, kAll, kAll));
    EXPECT_THAT(refusal.message, HasSubstr(device.name));
    EXPECT_THAT(refusal.remedy, Not(IsEmpty()));
  }
}

TEST_F(AdmissionTest, NamesOfReasonsAreTheMetricsLabels) {
  std::vector<std::string> names;
  for (RefusalReason reason :
       {RefusalReason::kBudget, RefusalReason::kDeviceLimit,
        RefusalReason::kInvalid, RefusalReason::kCreateFailed})
    names.push_back(RefusalReasonName(reason));
  EXPECT_THAT(
      names, ElementsAre("budget", "device_limit", "invalid", "create_failed"));
}

}  // namespace
}  // namespace purser::sidecar
