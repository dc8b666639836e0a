// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/fit.h"

#include <gtest/gtest.h>

#include <random>

#include "queue_memory/registry.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

constexpr QueuePairRequest kRequest = {.max_send_wr = 128,
                                       .max_send_sge = 2,
                                       .max_recv_wr = 128,
                                       .max_recv_sge = 1};

TEST(Fit, CompletionQueueTakesAllThatCanBePosted) {
  const auto rxe =
      QueuePairWithCompletionQueueMemory(Provider::kRxe, {}, kRequest);
  EXPECT_EQ(rxe.cqe, 255u + 255u);
  EXPECT_EQ(rxe.memory.cap_cqe, 511u);
  EXPECT_EQ(rxe.memory.total(),
            QueuePairMemory(Provider::kRxe, {}, kRequest).total() +
                CompletionQueueMemory(Provider::kRxe, {}, 510).total());
  const auto mlx5 =
      QueuePairWithCompletionQueueMemory(Provider::kMlx5, {}, kRequest);
  EXPECT_EQ(mlx5.cqe, 128u + 128u);
  EXPECT_EQ(mlx5.memory.cap_cqe, 511u);
  EXPECT_EQ(mlx5.memory.completion, (Charge{32768, 0}));
}

TEST(Fit, CompletionQueueWithHeadroom) {
  const auto cqe = [](Provider provider, QueuePairRequest request) {
    return QueuePairWithCompletionQueueMemory(provider, {}, request,
                                              CompletionQueueSize::kHeadroom)
        .cqe;
  };
  EXPECT_EQ(cqe(Provider::kMlx5, kRequest), 256u + 51);
  EXPECT_EQ(cqe(Provider::kRxe, kRequest), 255u + 255u);
  EXPECT_EQ(cqe(Provider::kRxe, {}), 1u);
  QueuePairRequest request = kRequest;
  request.uses_srq = true;
  EXPECT_EQ(cqe(Provider::kMlx5, request), 128u + 25);
}

TEST(Fit, CompletionQueueHasAtLeastOneEntry) {
  const auto plan = QueuePairWithCompletionQueueMemory(Provider::kRxe, {}, {});
  EXPECT_FALSE(plan.memory.refusal);
  EXPECT_EQ(plan.cqe, 1u);
}

TEST(Fit, CompletionQueueIsClippedToWhatTheDeviceTakes) {
  QueuePairRequest request = kRequest;
  request.max_send_wr = 40000;
  const auto plan =
      QueuePairWithCompletionQueueMemory(Provider::kRxe, {}, request);
  EXPECT_EQ(plan.cqe, 32767u);
  EXPECT_EQ(plan.memory.cap_cqe, 32767u);
  const auto told = QueuePairWithCompletionQueueMemory(
      Provider::kRxe, {.max_cqe = 100}, kRequest);
  EXPECT_EQ(told.cqe, 100u);
  EXPECT_FALSE(told.memory.refusal);
}

TEST(Fit, RefusalOfTheQueuePair) {
  const auto plan = QueuePairWithCompletionQueueMemory(
      Provider::kRxe, {}, {.max_send_wr = UINT32_MAX});
  EXPECT_EQ(plan.memory.refusal.limit, Limit::kMaxSendWr);
  EXPECT_EQ(plan.memory.total(), Charge());
  EXPECT_EQ(plan.cqe, 0u);
}

TEST(Fit, AnyRequestIsSafe) {
  for (const Provider provider : KnownProviders())
    for (const uint32_t wr : {0u, 1u, 1u << 31, UINT32_MAX}) {
      const auto plan = QueuePairWithCompletionQueueMemory(
          provider, {.max_qp_wr = UINT32_MAX, .max_cqe = UINT32_MAX},
          {.max_send_wr = wr, .max_recv_wr = wr});
      EXPECT_TRUE(plan.memory.refusal || plan.cqe > 0);
      EXPECT_LE(plan.memory.total().total(), UINT64_MAX / 16);
    }
}

TEST(Fit, BothBoundsCount) {
  EXPECT_TRUE(Fits({10, 20}, {.total = 30, .container = 10}));
  EXPECT_FALSE(Fits({10, 20}, {.total = 29, .container = 10}));
  EXPECT_FALSE(Fits({10, 20}, {.total = 30, .container = 9}));
  EXPECT_FALSE(Fits({10, 20}, {.total = 5, .container = 10}));
  EXPECT_TRUE(Fits({UINT64_MAX, 0}, {}));
  EXPECT_FALSE(Fits({UINT64_MAX, 1}, {}));  // does not wrap
  EXPECT_FALSE(Fits({1, UINT64_MAX}, {}));
}

TEST(Fit, LargestThatFits) {
  static_assert(LargestThatFits(10, [](uint32_t) { return true; }) == 10);
  static_assert(LargestThatFits(10, [](uint32_t) { return false; }) == 0);
  static_assert(LargestThatFits(10, [](uint32_t n) { return n <= 7; }) == 7);
  static_assert(LargestThatFits(0, [](uint32_t) { return true; }) == 0);
  static_assert(LargestThatFits(UINT32_MAX, [](uint32_t) { return true; }) ==
                UINT32_MAX);
  static_assert(
      LargestThatFits(UINT32_MAX, [](uint32_t n) { return n <= 1; }) == 1);
}

// At each headroom the answer fits and one more does not.
TEST(Fit, LargestSendWrIsTheEdge) {
  std::mt19937_64 random(1);
  for (const Provider provider : KnownProviders()) {
    for (int i = 0; i < 200; ++i) {
      const Headroom headroom = {.total = random() >> (30 + random() % 30),
                                 .container = random() >> (30 + random() % 30)};
      QueuePairRequest request = kRequest;
      if (provider == Provider::kEfa) request.type = QueuePairType::kUd;
      request.max_send_sge = random() % 16;
      request.max_recv_wr = random() % 1000;
      const auto fits = [&](uint32_t max_send_wr) {
        request.max_send_wr = max_send_wr;
        const QueueMemory memory =
            QueuePairWithCompletionQueueMemory(provider, {}, request).memory;
        return !memory.refusal && Fits(memory.total(), headroom);
      };
      const uint32_t largest = LargestSendWr(provider, {}, request, headroom);
      ASSERT_TRUE(largest == 0 || fits(largest)) << largest;
      ASSERT_FALSE(fits(largest + 1)) << largest;
    }
  }
}

TEST(Fit, LargestSendWrIsBoundedByTheDevice) {
  EXPECT_EQ(LargestSendWr(Provider::kRxe, {}, kRequest, {}), 1u << 20);
  EXPECT_EQ(LargestSendWr(Provider::kRxe, {.max_qp_wr = 1000}, kRequest, {}),
            1000u);
  EXPECT_EQ(LargestSendWr(Provider::kMlx5, {}, kRequest, {}), 8192u);
  EXPECT_EQ(LargestSendWr(Provider::kUnknown, {.max_qp_wr = 777}, kRequest, {}),
            777u);
}

TEST(Fit, NoSendWrWhereTheRestIsRefusedOrTooMuch) {
  QueuePairRequest request = kRequest;
  request.max_recv_sge = 33;
  EXPECT_EQ(LargestSendWr(Provider::kRxe, {}, request, {}), 0u);
  EXPECT_EQ(LargestSendWr(Provider::kRxe, {}, kRequest, {.total = 1000}), 0u);
  EXPECT_EQ(LargestSendWr(Provider::kMlx5, {}, kRequest, {.container = 1000}),
            0u);
  // rxe's rings are not the container's.
  EXPECT_GT(LargestSendWr(Provider::kRxe, {}, kRequest, {.container = 1000}),
            0u);
}

}  // namespace
}  // namespace purser::queue_memory
