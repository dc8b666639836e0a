// SPDX-License-Identifier: Apache-2.0
//
// What happens to a grant: its lease, what a created queue pair is charged, and
// many clients at once.
#include <atomic>
#include <barrier>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "queue_memory/registry.h"
#include "sidecar/actual_charge.h"
#include "sidecar/admission.h"

namespace purser::sidecar {
namespace {

using queue_memory::Provider;
using queue_memory::QueuePairRequest;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

DeviceTraits DeviceOf(Provider provider) {
  return {.name = queue_memory::ProviderName(provider),
          .provider = provider,
          .limits = {.max_qp_wr = 16384, .max_sge = 30, .max_cqe = 32767},
          .max_qp = 65536};
}

constexpr QueuePairRequest kRequest = {.max_send_wr = 100,
                                       .max_send_sge = 2,
                                       .max_recv_wr = 100,
                                       .max_recv_sge = 1};

class LeaseTest : public ::testing::Test {
 protected:
  LeaseTest() { ledger::Ledger::Format(state_); }

  Admission WithBudget(uint64_t bytes) {
    BudgetInputs inputs;
    inputs.explicit_bytes = bytes;
    return Admission(ledger_, *DetermineBudget(inputs));
  }
  Grant Granted(Provider provider, const QueuePairRequest& request = kRequest) {
    return std::get<Grant>(
        WithBudget(64 * kMiB).Admit(DeviceOf(provider), request, 0));
  }
  uint64_t held() const { return ledger_.balance().held.total(); }

  ledger::LedgerState state_;
  ledger::Ledger ledger_{&state_};
  std::shared_ptr<Accounts> accounts_ = std::make_shared<Accounts>(
      ledger_, ClassesConfig{.classes = {{.name = kDefaultClass}}});
};

// As the provider writes back by the model.
ibv_qp_cap Predicted(const Grant& grant) {
  return {.max_send_wr = grant.predicted.cap_send_wr,
          .max_recv_wr = grant.predicted.cap_recv_wr,
          .max_send_sge = grant.predicted.cap_send_sge,
          .max_recv_sge = grant.predicted.cap_recv_sge,
          .max_inline_data = grant.predicted.cap_inline_data};
}

TEST_F(LeaseTest, ReturnsItsBytesOnceHoweverItIsMoved) {
  ASSERT_TRUE(ledger_.Reserve({.container = 5, .node = 7}).ok());
  ASSERT_TRUE(ledger_.Reserve({.container = 1}).ok());
  {
    Lease lease(accounts_->AccountOf({}), {.container = 5, .node = 7});
    Lease moved(std::move(lease));
    Lease other(accounts_->AccountOf({}), {.container = 1});
    other = std::move(moved);
    EXPECT_EQ(held(), 12u) << "assignment returns what was there";
    other = std::move(other);
    EXPECT_EQ(held(), 12u);
    EXPECT_EQ(ledger_.balance().leases, 1u);
  }
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(ledger_.balance().leases, 0u);
  Lease none;
  EXPECT_FALSE(none.Commit({.node = 1}));
}

TEST_F(LeaseTest, CommitsToMoreOrLess) {
  ledger_.SetBounds(100, 100);
  ASSERT_TRUE(ledger_.Reserve({.node = 50}).ok());
  Lease lease(accounts_->AccountOf({}), {.node = 50});
  EXPECT_TRUE(lease.Commit({.node = 40}));
  EXPECT_EQ(held(), 40u);
  EXPECT_TRUE(lease.Commit({.container = 10, .node = 90}));
  EXPECT_EQ(held(), 100u);
  EXPECT_FALSE(lease.Commit({.container = 11, .node = 90}));
  EXPECT_EQ(held(), 100u) << "a refused commit leaves the lease as it was";
  EXPECT_EQ(lease.charge(), (ledger::Charge{.container = 10, .node = 90}));
}

TEST_F(LeaseTest, AsPredictedIsChargedAsPredicted) {
  const Admission admission = WithBudget(64 * kMiB);
  int granted = 0;
  std::vector<Provider> providers = {Provider::kUnknown};
  for (const Provider provider : queue_memory::KnownProviders())
    providers.push_back(provider);
  for (const Provider provider : providers) {
    for (uint32_t send_wr : {1u, 16u, 100u, 128u, 255u, 4096u}) {
      for (uint32_t sge : {1u, 2u, 3u, 4u, 8u, 13u}) {
        for (uint32_t inline_data : {0u, 60u, 61u, 220u}) {
          QueuePairRequest request = kRequest;
          if (provider == Provider::kEfa)
            request.type = queue_memory::QueuePairType::kUd;
          request.max_send_wr = send_wr;
          request.max_send_sge = request.max_recv_sge = sge;
          request.max_inline_data = inline_data;
          const auto result = admission.Admit(DeviceOf(provider), request, 0);
          const auto* grant = std::get_if<Grant>(&result);
          if (grant == nullptr) continue;  // has no rings so large
          ++granted;
          const Actual actual =
              ActualCharge(*grant, Predicted(*grant), grant->predicted.cap_cqe);
          EXPECT_EQ(actual.charge, ToLedger(grant->predicted.total()));
          EXPECT_THAT(actual.mismatch, IsEmpty());
        }
      }
    }
  }
  EXPECT_GT(granted, 1000);
}

TEST_F(LeaseTest, AKernelThatWritesBackWhatWasAskedIsNoMismatch) {
  const Grant grant = Granted(Provider::kRxe);
  const ibv_qp_cap cap = {.max_send_wr = 100,
                          .max_recv_wr = 100,
                          .max_send_sge = 2,
                          .max_recv_sge = 1};
  const Actual actual = ActualCharge(grant, cap, grant.completion.cqe);
  EXPECT_EQ(actual.charge, ToLedger(grant.predicted.total()));
  EXPECT_THAT(actual.mismatch, IsEmpty());
}

TEST_F(LeaseTest, CapacitiesThatTheRingsCouldNotHoldAreChargedInstead) {
  const Grant grant = Granted(Provider::kRxe);
  ibv_qp_cap cap = Predicted(grant);
  ASSERT_EQ(cap.max_send_wr, 127u);
  cap.max_send_wr = 128;  // needs a ring of 256
  const Actual actual = ActualCharge(grant, cap, grant.completion.cqe);
  EXPECT_GT(actual.charge.node, grant.predicted.total().node);
  EXPECT_EQ(actual.memory.send_ring.slots, 255u);
  EXPECT_THAT(actual.mismatch,
              AllOf(HasSubstr("queue pair RC 100/2 send, 100/1 receive on rxe"),
                    HasSubstr("written back 128/")));

  const Actual deep_cq = ActualCharge(grant, Predicted(grant), 4096);
  EXPECT_GT(deep_cq.charge.node, grant.predicted.total().node);
  EXPECT_THAT(deep_cq.mismatch, HasSubstr("4096 cqe"));
}

TEST_F(LeaseTest, AGrantBelowWhatWasAskedIsAMismatch) {
  const Grant grant = Granted(Provider::kMlx5);
  ibv_qp_cap cap = Predicted(grant);
  cap.max_send_wr = 64;
  cap.max_recv_sge = 0;
  const Actual actual = ActualCharge(grant, cap, grant.predicted.cap_cqe);
  EXPECT_EQ(actual.charge, ToLedger(grant.predicted.total()));
  EXPECT_THAT(actual.mismatch,
              AllOf(HasSubstr("max_send_wr 64 granted of 100 asked"),
                    HasSubstr("max_recv_sge 0 granted of 1 asked")));
}

TEST_F(LeaseTest, SidesThatWereNotAskedForAreNotCompared) {
  QueuePairRequest request = kRequest;
  request.max_recv_wr = 0;
  const Grant grant = Granted(Provider::kMlx5, request);
  ibv_qp_cap cap = Predicted(grant);
  cap.max_recv_sge = 0;
  EXPECT_THAT(ActualCharge(grant, cap, grant.predicted.cap_cqe).mismatch,
              IsEmpty());
}

TEST_F(LeaseTest, TheFallbackChargesMoreWithoutCallingItAMismatch) {
  const Grant grant = Granted(Provider::kUnknown);
  ibv_qp_cap cap = Predicted(grant);
  cap.max_send_wr = 1000;
  const Actual actual = ActualCharge(grant, cap, grant.completion.cqe);
  EXPECT_GT(actual.charge.total(), grant.predicted.total().total());
  EXPECT_THAT(actual.mismatch, IsEmpty());
}

TEST_F(LeaseTest, NonsenseWrittenBackIsAMismatchThatCannotBeCommitted) {
  for (Provider provider : {Provider::kRxe, Provider::kMlx5}) {
    Grant grant = Granted(provider);
    const ibv_qp_cap cap = {.max_send_wr = UINT32_MAX,
                            .max_recv_wr = UINT32_MAX,
                            .max_send_sge = UINT32_MAX,
                            .max_recv_sge = UINT32_MAX,
                            .max_inline_data = UINT32_MAX};
    const Actual actual = ActualCharge(grant, cap, UINT32_MAX);
    EXPECT_THAT(actual.mismatch, HasSubstr("do not fit the rings predicted"));
    EXPECT_GE(actual.charge.total(), grant.predicted.total().total());
  }
}

// 16 clients ask for, commit, keep and return queue pairs of several shapes; a
// watcher reads the ledger all the while.
TEST_F(LeaseTest, ManyThreadsNeverExceedTheBudgetAtAnyInstant) {
  constexpr int kThreads = 16, kRounds = 400;
  constexpr uint64_t kBudget = 400 * 1024;
  const Admission admission = WithBudget(kBudget);
  std::atomic<bool> done = false;
  std::atomic<uint64_t> granted = 0, refused = 0, over = 0;

  std::barrier start(kThreads + 1);
  std::jthread watcher([&] {
    start.arrive_and_wait();
    while (!done) {
      if (state_.total_held.load() > kBudget) ++over;
    }
  });
  {
    std::vector<std::jthread> clients;
    for (int thread = 0; thread < kThreads; ++thread) {
      clients.emplace_back([&, thread] {
        const DeviceTraits device = DeviceOf(Provider::kRxe);
        std::vector<Grant> kept;
        start.arrive_and_wait();
        for (int round = 0; round < kRounds; ++round) {
          QueuePairRequest request = kRequest;
          request.max_send_wr = 16u << ((thread + round) % 5);
          auto result = admission.Admit(device, request, kept.size());
          if (auto* grant = std::get_if<Grant>(&result)) {
            ++granted;
            const Actual actual = ActualCharge(*grant, Predicted(*grant),
                                               grant->predicted.cap_cqe);
            ASSERT_TRUE(grant->lease.Commit(actual.charge));
            kept.push_back(std::move(*grant));
          } else {
            ++refused;
            const Refusal& refusal = std::get<Refusal>(result);
            ASSERT_EQ(refusal.reason, RefusalReason::kBudget);
            ASSERT_LE(refusal.used_bytes, kBudget);
            kept.clear();
          }
          if (kept.size() > 3) kept.erase(kept.begin());
        }
      });
    }
  }
  done = true;
  watcher.join();
  EXPECT_EQ(over, 0u);
  EXPECT_EQ(granted + refused, uint64_t{kThreads} * kRounds);
  EXPECT_GT(granted, 0u);
  EXPECT_GT(refused, 0u) << "the budget was never reached: nothing was tested";
  EXPECT_LE(ledger_.balance().peak_total_held, kBudget);
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(ledger_.balance().leases, 0u);
}

}  // namespace
}  // namespace purser::sidecar
