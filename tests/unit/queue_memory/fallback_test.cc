// SPDX-License-Identifier: Apache-2.0
//
// The fallback against what all known providers really allocate.
#include <gtest/gtest.h>

#include <algorithm>

#include "queue_memory/queue_memory.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

QueueMemory Fallback(const QueuePairRequest& request,
                     DeviceLimits limits = {}) {
  return QueuePairMemory(Provider::kUnknown, limits, request);
}

// docs/memory-model.md states these shares.
TEST(Fallback, CoversTheRealTotalOfQueuePairs) {
  int all = 0, all_covered = 0;
  std::vector<double> ratios;
  for (const std::string& provider : QueuePairProviders()) {
    int rows = 0, covered = 0;
    for (const GoldenQueuePair& row : ReadQueuePairs(provider)) {
      if (!row.ok) continue;
      const uint64_t real = row.buffer_bytes + row.heap_bytes;
      const QueueMemory memory = Fallback(row.request);
      ASSERT_FALSE(memory.refusal) << row;
      ++rows;
      if (memory.total().total() >= real) ++covered;
      ratios.push_back(static_cast<double>(memory.total().total()) / real);
    }
    EXPECT_GT(rows, 600) << provider;
    EXPECT_GE(covered, rows * 0.97) << provider;
    all += rows;
    all_covered += covered;
  }
  std::sort(ratios.begin(), ratios.end());
  RecordProperty("covered", all_covered);
  RecordProperty("rows", all);
  EXPECT_EQ(all, 12449);
  EXPECT_EQ(all_covered, 12411);                      // 99.7 %
  EXPECT_NEAR(ratios[ratios.size() / 2], 4.9, 0.05);  // median
  EXPECT_NEAR(ratios[ratios.size() * 9 / 10], 16.7, 0.1);
  EXPECT_GT(ratios.front(), 0.84);  // the worst of those not covered
}

TEST(Fallback, CoversTheRealTotalOfAllCompletionQueues) {
  int rows = 0;
  for (const GoldenCompletionQueue& row : ReadCompletionQueues()) {
    if (!row.ok) continue;
    ++rows;
    EXPECT_GE(
        CompletionQueueMemory(Provider::kUnknown, {}, row.cqe).total().total(),
        row.buffer_bytes)
        << row;
  }
  EXPECT_EQ(rows, 843);
}

TEST(Fallback, IsFlaggedAndChargedToTheNode) {
  const QueueMemory memory = Fallback({.max_send_wr = 10,
                                       .max_send_sge = 2,
                                       .max_inline_data = 16,
                                       .max_recv_wr = 20,
                                       .max_recv_sge = 1});
  EXPECT_EQ(memory.exactness, Exactness::kFallback);
  EXPECT_EQ(memory.send, (Charge{0, 6 * 10 * (64 + 32)}));
  EXPECT_EQ(memory.receive, (Charge{0, 6 * 20 * (64 + 16)}));
  EXPECT_EQ(memory.overhead, (Charge{0, 131072}));
  EXPECT_EQ(memory.total().container, 0u);
  EXPECT_EQ(memory.send_ring.slots, 10u);
  EXPECT_EQ(memory.cap_recv_wr, 20u);
  const QueueMemory cq = CompletionQueueMemory(Provider::kUnknown, {}, 100);
  EXPECT_EQ(cq.exactness, Exactness::kFallback);
  EXPECT_EQ(cq.total(), (Charge{0, 4 * 64 * 100 + 4096}));
}

TEST(Fallback, CountsInlineDataAndSkipsReceivesOfAnSrq) {
  EXPECT_EQ(
      Fallback({.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 256})
          .send.node,
      6u * (64 + 256));
  EXPECT_EQ(Fallback({.max_recv_wr = UINT32_MAX, .uses_srq = true}).receive,
            Charge());
}

TEST(Fallback, RefusesOnlyWhatTheDeviceTells) {
  EXPECT_FALSE(Fallback({.max_send_wr = UINT32_MAX,
                         .max_send_sge = 1000,
                         .max_recv_wr = UINT32_MAX})
                   .refusal);
  const DeviceLimits told = {
      .max_qp_wr = 10, .max_sge = 2, .max_cqe = 20, .max_inline_data = 30};
  const struct {
    QueuePairRequest request;
    Limit limit;
  } cases[] = {{{.max_send_wr = 11}, Limit::kMaxSendWr},
               {{.max_recv_wr = 11}, Limit::kMaxRecvWr},
               {{.max_send_sge = 3}, Limit::kMaxSendSge},
               {{.max_recv_sge = 3}, Limit::kMaxRecvSge},
               {{.max_inline_data = 31}, Limit::kMaxInlineData}};
  for (const auto& c : cases) {
    EXPECT_STREQ(LimitName(Fallback(c.request, told).refusal.limit),
                 LimitName(c.limit));
    EXPECT_EQ(Fallback(c.request, told).exactness, Exactness::kFallback);
    EXPECT_FALSE(Fallback(c.request).refusal);
  }
  EXPECT_EQ(CompletionQueueMemory(Provider::kUnknown, told, 21).refusal.limit,
            Limit::kMaxCqe);
  EXPECT_EQ(CompletionQueueMemory(Provider::kUnknown, {}, 0).refusal.limit,
            Limit::kMaxCqe);
}

}  // namespace
}  // namespace purser::queue_memory
