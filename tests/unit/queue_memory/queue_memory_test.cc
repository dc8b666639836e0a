// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/queue_memory.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "queue_memory/arithmetic.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

TEST(QueueMemory, EachLimitHasAName) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(kLastLimit); ++i)
    names.insert(LimitName(static_cast<Limit>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kLastLimit) + 1);
  EXPECT_STREQ(LimitName(Limit::kMaxSendWr), "max_send_wr");
  EXPECT_STREQ(LimitName(static_cast<Limit>(250)), "none");
}

TEST(QueueMemory, SumOfAQueuePairAndItsCompletionQueue) {
  const QueueMemory queue_pair = QueuePairMemory(
      Provider::kRxe, {},
      {.max_send_wr = 4096, .max_send_sge = 16, .max_recv_wr = 1});
  const QueueMemory completion_queue =
      CompletionQueueMemory(Provider::kRxe, {}, 16);
  const QueueMemory sum = Sum(queue_pair, completion_queue);
  EXPECT_FALSE(sum.refusal);
  EXPECT_EQ(sum.total(), queue_pair.total() + completion_queue.total());
  EXPECT_EQ(sum.buffer_bytes,
            queue_pair.buffer_bytes + completion_queue.buffer_bytes);
  EXPECT_EQ(sum.send_ring.bytes, queue_pair.send_ring.bytes);
  EXPECT_EQ(sum.receive_ring.slots, 1u);
  EXPECT_EQ(sum.completion_ring.slots, 31u);
  EXPECT_EQ(sum.overhead, (Charge{464 + 344, 12288}));
  EXPECT_EQ(sum.cap_send_wr, 8191u);
  EXPECT_EQ(sum.cap_send_sge, 16u);
  EXPECT_EQ(sum.cap_inline_data, 256u);
  EXPECT_EQ(sum.cap_recv_wr, 1u);
  EXPECT_EQ(sum.cap_cqe, 31u);
}

TEST(QueueMemory, SumTakesTheWorseOfBoth) {
  const QueueMemory good = CompletionQueueMemory(Provider::kRxe, {}, 16);
  const QueueMemory refused = CompletionQueueMemory(Provider::kRxe, {}, 32768);
  const QueueMemory fallback = CompletionQueueMemory(Provider::kUnknown, {}, 1);
  EXPECT_EQ(Sum(good, fallback).exactness, Exactness::kFallback);
  EXPECT_EQ(Sum(fallback, good).exactness, Exactness::kFallback);
  EXPECT_EQ(Sum(good, good).exactness, Exactness::kExact);
  for (const QueueMemory& sum :
       {Sum(good, refused), Sum(refused, good), Sum(refused, fallback)}) {
    EXPECT_EQ(sum.refusal.limit, Limit::kMaxCqe);
    EXPECT_EQ(sum.refusal.asked, 32768u);
    EXPECT_EQ(sum.total(), Charge());
    EXPECT_EQ(sum.cap_cqe, 0u);
  }
}

TEST(QueueMemory, TotalAddsAllParts) {
  QueueMemory memory;
  memory.send = {1, 2};
  memory.receive = {10, 20};
  memory.completion = {100, 200};
  memory.shared_receive = {1000, 2000};
  memory.arrays = {10000, 20000};
  memory.overhead = {100000, 200000};
  EXPECT_EQ(memory.total(), (Charge{111111, 222222}));
}

TEST(QueueMemory, TextbookSum) {
  EXPECT_EQ(TextbookBytes({.max_send_wr = 4096,
                           .max_send_sge = 8,
                           .max_recv_wr = 4096,
                           .max_recv_sge = 1}),
            uint64_t{1088} * 1024);
  EXPECT_EQ(TextbookBytes({.max_send_wr = 1,
                           .max_recv_wr = 1000,
                           .max_recv_sge = 1,
                           .uses_srq = true}),
            64u);
  EXPECT_EQ(
      TextbookBytes({.max_send_wr = UINT32_MAX, .max_send_sge = UINT32_MAX}),
      UINT64_MAX);
  EXPECT_EQ(TextbookBytes({.max_send_wr = 1,
                           .max_recv_wr = UINT32_MAX,
                           .max_recv_sge = UINT32_MAX}),
            UINT64_MAX);
}

TEST(Arithmetic, Edges) {
  static_assert(RoundUp(0, 4096) == 0 && RoundUp(1, 4096) == 4096 &&
                RoundUp(4096, 4096) == 4096 && RoundUp(4097, 4096) == 8192);
  static_assert(NextPowerOfTwo(0) == 1 && NextPowerOfTwo(1) == 1 &&
                NextPowerOfTwo(3) == 4 && NextPowerOfTwo(4) == 4 &&
                NextPowerOfTwo(uint64_t{1} << 32) == uint64_t{1} << 32 &&
                NextPowerOfTwo((uint64_t{1} << 32) + 1) == uint64_t{1} << 33);
  static_assert(SaturatingAdd(UINT64_MAX, 1) == UINT64_MAX &&
                SaturatingAdd(UINT64_MAX - 1, 1) == UINT64_MAX &&
                SaturatingAdd(1, 2) == 3);
  static_assert(SaturatingMultiply(UINT64_MAX, 0) == 0 &&
                SaturatingMultiply(UINT64_MAX, 2) == UINT64_MAX &&
                SaturatingMultiply(3, 4) == 12);
}

}  // namespace
}  // namespace purser::queue_memory
