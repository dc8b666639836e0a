// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/cliffs.h"

#include <gtest/gtest.h>

#include "tests/unit/queue_memory/arbitrary.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

QueuePairRequest Rc(uint32_t wr, uint32_t sge, uint32_t inline_data = 0) {
  return {.max_send_wr = wr,
          .max_send_sge = sge,
          .max_inline_data = inline_data,
          .max_recv_wr = wr,
          .max_recv_sge = 1};
}

// 4096 x 320 bytes are rounded up to 2 MiB, which hold 6553.
TEST(Cliffs, Mlx5RoundsTheBytesUp) {
  const Cliffs cliffs = QueuePairCliffs(Provider::kMlx5, {}, Rc(4096, 8));
  const Plateau& depth = cliffs.of(Argument::kMaxSendWr);
  EXPECT_EQ(depth.most, 6553u);
  EXPECT_EQ(depth.least, 3277u);
  EXPECT_EQ(depth.below.value, 3276u);
  EXPECT_EQ(Saves(cliffs.memory, depth.below), (1u << 20) + (1u << 18));
  EXPECT_EQ(depth.above.value, 6554u);
  EXPECT_EQ(depth.above.refusal.limit, Limit::kSendRingSize);
  EXPECT_EQ(Saves(cliffs.memory, depth.above), 0u);
  // 2 MiB hold 4096 entries of up to 512 bytes.
  EXPECT_EQ(cliffs.of(Argument::kMaxInlineData).most, 512u - 192 - 4);
  EXPECT_EQ(cliffs.of(Argument::kMaxSendSge).most, (512u - 192) / 16);
}

TEST(Cliffs, Mlx5InlineDataOf61DoublesTheSendRing) {
  const Cliffs cliffs = QueuePairCliffs(Provider::kMlx5, {}, Rc(256, 4, 64));
  const Plateau& inlined = cliffs.of(Argument::kMaxInlineData);
  EXPECT_EQ(inlined.least, 61u);
  EXPECT_EQ(inlined.most, 316u);
  EXPECT_EQ(inlined.below.value, 60u);
  EXPECT_EQ(cliffs.memory.send.container, 131072u);
  EXPECT_EQ(Saves(cliffs.memory, inlined.below), 65536u + 65536 / 4);
}

TEST(Cliffs, Mlx5RestrictedSendOps) {
  const Cliffs cliffs = QueuePairCliffs(Provider::kMlx5, {}, Rc(256, 4, 64));
  ASSERT_TRUE(cliffs.plain_send_ops.exists);
  // Rings and arrays: 169,984 against 47,104, 3.6 times as much.
  constexpr uint64_t kFixed = 992 + 64;
  EXPECT_EQ(cliffs.memory.total().total() - kFixed, 169984u);
  EXPECT_EQ(cliffs.plain_send_ops.total.total() - kFixed, 47104u);
  EXPECT_EQ(Saves(cliffs.memory, cliffs.plain_send_ops), 169984u - 47104);
  // Where rounding eats it there is nothing to gain.
  EXPECT_FALSE(
      QueuePairCliffs(Provider::kMlx5, {}, Rc(1024, 16)).plain_send_ops.exists);
  QueuePairRequest plain = Rc(256, 4);
  plain.send_ops = kSendOpsPlain;
  EXPECT_FALSE(
      QueuePairCliffs(Provider::kMlx5, {}, plain).plain_send_ops.exists);
  EXPECT_FALSE(
      QueuePairCliffs(Provider::kRxe, {}, Rc(256, 4)).plain_send_ops.exists);
}

TEST(Cliffs, Rxe255CostsHalfOf256) {
  const Cliffs cliffs = QueuePairCliffs(Provider::kRxe, {}, Rc(256, 4));
  const Plateau& depth = cliffs.of(Argument::kMaxSendWr);
  EXPECT_EQ(depth.least, 256u);
  EXPECT_EQ(depth.most, 511u);
  EXPECT_EQ(depth.below.value, 255u);
  EXPECT_EQ(Saves(cliffs.memory, depth.below), 131072u);
  EXPECT_EQ(depth.above.value, 512u);
  EXPECT_EQ(cliffs.of(Argument::kMaxRecvWr).below.value, 255u);
  // 208 + 304 = 512: up to 19 SGEs or 304 bytes inline.
  EXPECT_EQ(cliffs.of(Argument::kMaxSendSge).most, 19u);
  EXPECT_EQ(cliffs.of(Argument::kMaxInlineData).most, 304u);
}

TEST(Cliffs, TheCompletionQueueCounts) {
  const Cliffs alone = QueuePairCliffs(Provider::kBnxtRe, {}, Rc(200, 1));
  const Cliffs both = QueuePairCliffs(Provider::kBnxtRe, {}, Rc(200, 1),
                                      Scope::kWithCompletionQueue);
  EXPECT_GT(both.memory.total().total(), alone.memory.total().total());
  EXPECT_GT(both.memory.completion_ring.slots, 0u);
  EXPECT_LE(both.of(Argument::kMaxSendWr).most,
            alone.of(Argument::kMaxSendWr).most);
}

TEST(Cliffs, CompletionQueueOfAPowerOfTwoDoubles) {
  const Plateau plateau = CompletionQueuePlateau(Provider::kMlx5, {}, 256);
  EXPECT_EQ(plateau.least, 256u);
  EXPECT_EQ(plateau.most, 511u);
  EXPECT_EQ(plateau.below.value, 255u);
  const QueueMemory memory = CompletionQueueMemory(Provider::kMlx5, {}, 256);
  EXPECT_EQ(Saves(memory, plateau.below), 16384u);
  EXPECT_FALSE(CompletionQueuePlateau(Provider::kMlx5, {}, 1).below.exists);
  EXPECT_EQ(CompletionQueuePlateau(Provider::kMlx5, {}, 0).most, 0u);
}

TEST(Cliffs, SharedReceiveQueue) {
  const Plateau plateau =
      SharedReceiveQueuePlateau(Provider::kMlx5, {}, {4096, 1});
  EXPECT_EQ(plateau.least, 4096u);
  EXPECT_EQ(plateau.most, 8191u);
  EXPECT_EQ(SharedReceiveQueuePlateau(Provider::kMana, {}, {4096, 1}).most, 0u);
}

TEST(Cliffs, NothingBelowTheLeastThatMakesSense) {
  const Cliffs one = QueuePairCliffs(Provider::kRxe, {}, Rc(1, 1));
  for (const Argument argument : kArguments)
    EXPECT_FALSE(one.of(argument).below.exists) << ArgumentName(argument);
  // A side that was not asked for stays so.
  QueuePairRequest sends = Rc(16, 1);
  sends.max_recv_wr = sends.max_recv_sge = 0;
  const Cliffs none = QueuePairCliffs(Provider::kMlx5, {}, sends);
  EXPECT_EQ(none.of(Argument::kMaxRecvWr).least, 0u);
  EXPECT_FALSE(none.of(Argument::kMaxRecvWr).below.exists);
}

TEST(Cliffs, WhatTheProviderDoesNotLookAt) {
  QueuePairRequest sharing = Rc(16, 1);
  sharing.uses_srq = true;
  const Cliffs cliffs = QueuePairCliffs(Provider::kRxe, {}, sharing);
  const Plateau& receives = cliffs.of(Argument::kMaxRecvWr);
  EXPECT_EQ(receives.least, 1u);
  EXPECT_EQ(receives.most, UINT32_MAX);
  EXPECT_FALSE(receives.above.exists);
}

TEST(Cliffs, OfARefusedRequestThereAreNone) {
  const Cliffs cliffs = QueuePairCliffs(Provider::kMlx5, {}, Rc(1u << 20, 1));
  EXPECT_EQ(cliffs.memory.refusal.limit, Limit::kMaxSendWr);
  EXPECT_EQ(cliffs.of(Argument::kMaxSendWr).most, 0u);
}

void ExpectEdges(const DeviceProfile& profile, const QueuePairRequest& request,
                 const Cliffs& cliffs, Argument argument,
                 Arbitrary& arbitrary) {
  const auto total = [&](uint32_t value) {
    const QueueMemory memory = QueuePairMemory(profile.provider, profile.limits,
                                               With(request, argument, value));
    return memory.refusal ? Charge{UINT64_MAX, 0} : memory.total();
  };
  const Plateau& plateau = cliffs.of(argument);
  const Charge now = cliffs.memory.total();
  ASSERT_LE(plateau.least, ValueOf(request, argument));
  ASSERT_GE(plateau.most, ValueOf(request, argument));
  ASSERT_EQ(total(plateau.least), now);
  ASSERT_EQ(total(plateau.most), now);
  for (int i = 0; i < 8; ++i)
    ASSERT_EQ(total(plateau.least + arbitrary.Up(plateau.most - plateau.least)),
              now);
  if (plateau.below.exists) {
    ASSERT_EQ(plateau.below.value, plateau.least - 1);
    ASSERT_NE(total(plateau.below.value), now);
  }
  if (plateau.above.exists) {
    ASSERT_EQ(plateau.above.value, plateau.most + 1);
    ASSERT_NE(total(plateau.above.value), now);
  }
  // Deeper never costs less.
  if (argument == Argument::kMaxSendWr && plateau.below.exists &&
      !plateau.below.refusal) {
    ASSERT_GT(Saves(cliffs.memory, plateau.below), 0u);
  }
}

TEST(Cliffs, EdgesAreWhereTheCostChanges) {
  for (const DeviceProfile& profile : Profiles()) {
    Arbitrary arbitrary(7);
    int granted = 0;
    for (int i = 0; i < 400; ++i) {
      QueuePairRequest request = arbitrary.Sensible();
      request.type = TypeOf(profile.provider, request.type);
      request.max_send_sge %= 3, request.max_recv_sge %= 3;
      request.max_inline_data %= 90;
      const Cliffs cliffs =
          QueuePairCliffs(profile.provider, profile.limits, request);
      if (cliffs.memory.refusal) continue;
      ++granted;
      for (const Argument argument : kArguments) {
        SCOPED_TRACE(testing::Message()
                     << profile.name << " " << ArgumentName(argument)
                     << " of send " << request.max_send_wr << "/"
                     << request.max_send_sge << "/" << request.max_inline_data
                     << " recv " << request.max_recv_wr << "/"
                     << request.max_recv_sge);
        ExpectEdges(profile, request, cliffs, argument, arbitrary);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(granted, 50) << profile.name;
  }
}

}  // namespace
}  // namespace purser::queue_memory
