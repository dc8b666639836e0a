// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "queue_memory/queue_memory.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

QueueMemory Mlx5(const QueuePairRequest& request, DeviceLimits limits = {}) {
  return QueuePairMemory(Provider::kMlx5, limits, request);
}

void ExpectRefusal(const QueueMemory& memory, Limit limit, uint64_t asked,
                   uint64_t allowed) {
  EXPECT_STREQ(LimitName(memory.refusal.limit), LimitName(limit));
  EXPECT_EQ(memory.refusal.asked, asked);
  EXPECT_EQ(memory.refusal.allowed, allowed);
  EXPECT_EQ(memory.total(), Charge());
}

TEST(Mlx5, Parts) {
  const QueueMemory memory = Mlx5({.max_send_wr = 256,
                                   .max_send_sge = 4,
                                   .max_inline_data = 64,
                                   .max_recv_wr = 256,
                                   .max_recv_sge = 1});
  EXPECT_EQ(memory.send_ring.stride, 320u);
  EXPECT_EQ(memory.send_ring.slots, 409u);
  EXPECT_EQ(memory.send, (Charge{131072, 0}));
  EXPECT_EQ(memory.receive_ring.stride, 16u);
  EXPECT_EQ(memory.receive, (Charge{4096, 0}));
  EXPECT_EQ(memory.arrays, (Charge{34816, 0}));
  EXPECT_EQ(memory.overhead, (Charge{992 + 64, 0}));
  EXPECT_EQ(memory.buffer_bytes, 135168u);
}

// Page rounding of the one buffer, and of RAW_PACKET's two.
TEST(Mlx5, PageRoundingIsOverhead) {
  QueuePairRequest request = {
      .max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1};
  EXPECT_EQ(Mlx5(request).overhead, (Charge{4096 - 256 - 64 + 992 + 64, 0}));
  EXPECT_EQ(Mlx5(request, {.page_size = 65536}).buffer_bytes, 65536u);
  request.type = QueuePairType::kRawPacket;
  EXPECT_EQ(Mlx5(request).buffer_bytes, 8192u);
}

// The lever of the send_ops flags, as figures of the provider's own code.
TEST(Mlx5, RestrictedSendOps) {
  QueuePairRequest request = {.send_ops = kSendOpsPlain,
                              .max_send_wr = 128,
                              .max_send_sge = 2,
                              .max_recv_wr = 128,
                              .max_recv_sge = 1};
  EXPECT_EQ(Mlx5(request).buffer_bytes + Mlx5(request).arrays.total(), 15360u);
  EXPECT_EQ(Mlx5(request).send_ring.stride, 64u);
  request.send_ops |= kSendOpsAtomic;  // 48 + 32
  EXPECT_EQ(Mlx5(request).send_ring.stride, 128u);
  request.send_ops |= kSendOpsBindOrInv;  // 192 + 32
  EXPECT_EQ(Mlx5(request).send_ring.stride, 256u);
  request.send_ops = kDefaultSendOps;
  EXPECT_EQ(Mlx5(request).send_ring.stride, 256u);
}

// As UD: a datagram segment; and the header of segmented sends. No such
// creation was recorded.
TEST(Mlx5, DciAndSegmentedSendsAreEstimated) {
  const QueueMemory dci = Mlx5({.type = QueuePairType::kDci,
                                .send_ops = kSendOpsPlain,
                                .max_send_wr = 64,
                                .max_send_sge = 3});
  EXPECT_EQ(dci.send_ring.stride, 128u);  // 32 + 48 + 48
  EXPECT_EQ(dci.exactness, Exactness::kEstimated);
  const QueueMemory segmented = Mlx5({.type = QueuePairType::kRawPacket,
                                      .max_send_wr = 64,
                                      .max_send_sge = 1,
                                      .max_tso_header = 54});
  EXPECT_EQ(segmented.send_ring.stride, 128u);  // 48 + 64 + 16
  EXPECT_EQ(segmented.exactness, Exactness::kEstimated);
}

TEST(Mlx5, NoReceiveRingWithSrq) {
  const QueueMemory memory = Mlx5({.max_send_wr = 256,
                                   .max_send_sge = 4,
                                   .max_recv_wr = 256,
                                   .max_recv_sge = UINT32_MAX,
                                   .uses_srq = true});
  ASSERT_FALSE(memory.refusal);
  EXPECT_EQ(memory.receive, Charge());
  EXPECT_EQ(memory.buffer_bytes + memory.arrays.total(), 81920u);
  EXPECT_EQ(memory.cap_recv_wr, 0u);
  EXPECT_EQ(memory.cap_recv_sge, 0u);
}

// The provider looks at max_recv_wr before it looks at the SRQ.
TEST(Mlx5, ReceiveWrIsCheckedEvenWithSrq) {
  ExpectRefusal(Mlx5({.max_recv_wr = 32769, .uses_srq = true}),
                Limit::kMaxRecvWr, 32769, 32768);
}

TEST(Mlx5, RefusalsNameTheLimit) {
  // 192 + 16 x 53 = 1040, in basic blocks 1088.
  ExpectRefusal(Mlx5({.max_send_wr = 1, .max_send_sge = 53}),
                Limit::kSendWqeSize, 1088, 1024);
  EXPECT_FALSE(Mlx5({.max_send_wr = 1, .max_send_sge = 52}).refusal);
  // 192 + 4 + 829 = 1025.
  ExpectRefusal(Mlx5({.max_send_wr = 1, .max_inline_data = 829}),
                Limit::kSendWqeSize, 1088, 1024);
  EXPECT_FALSE(Mlx5({.max_send_wr = 1, .max_inline_data = 828}).refusal);
  ExpectRefusal(Mlx5({.max_send_wr = 32769}), Limit::kMaxSendWr, 32769, 32768);
  ExpectRefusal(Mlx5({.max_send_wr = 8193, .max_send_sge = 1}),
                Limit::kSendRingSize, 65536, 32768);
  EXPECT_FALSE(Mlx5({.max_send_wr = 8192, .max_send_sge = 1}).refusal);
  ExpectRefusal(Mlx5({.max_recv_wr = 32769}), Limit::kMaxRecvWr, 32769, 32768);
  ExpectRefusal(Mlx5({.max_recv_wr = 1, .max_recv_sge = 33}),
                Limit::kReceiveWqeSize, 1024, 512);
  ExpectRefusal(CompletionQueueMemory(Provider::kMlx5, {}, 1u << 24),
                Limit::kMaxCqe, 1u << 24, (1u << 24) - 1);
  ExpectRefusal(CompletionQueueMemory(Provider::kMlx5, {}, 0), Limit::kMaxCqe,
                0, (1u << 24) - 1);
}

// Whatever the device tells: the provider's product stays in an int, and a
// number of slots in 32 bits.
TEST(Mlx5, CeilingsAboveWhatTheDeviceTells) {
  const DeviceLimits told = {.max_qp_wr = UINT32_MAX,
                             .max_send_wqebb = UINT32_MAX};
  EXPECT_FALSE(Mlx5({.max_send_wr = 2097151}, told).refusal);
  ExpectRefusal(Mlx5({.max_send_wr = 2097152}, told), Limit::kMaxSendWr,
                2097152, 2097151);
  EXPECT_EQ(Mlx5({.max_recv_wr = 1u << 31}, told).receive_ring.slots, 1u << 31);
  ExpectRefusal(Mlx5({.max_recv_wr = UINT32_MAX}, told), Limit::kMaxRecvWr,
                UINT32_MAX, 1u << 31);
}

// Nothing of the send side is looked at when there is none.
TEST(Mlx5, NoSendRingNoSendLimits) {
  const QueueMemory memory =
      Mlx5({.max_send_sge = 1000, .max_inline_data = 100000, .max_recv_wr = 1});
  ASSERT_FALSE(memory.refusal);
  EXPECT_EQ(memory.send, Charge());
  EXPECT_EQ(memory.cap_inline_data, 100000u);
}

TEST(Mlx5, WhatTheDeviceTellsWins) {
  ExpectRefusal(
      Mlx5({.max_send_wr = 1, .max_send_sge = 21}, {.max_sq_desc_sz = 512}),
      Limit::kSendWqeSize, 576, 512);
  ExpectRefusal(
      Mlx5({.max_recv_wr = 1, .max_recv_sge = 17}, {.max_rq_desc_sz = 256}),
      Limit::kReceiveWqeSize, 512, 256);
  ExpectRefusal(
      Mlx5({.max_send_wr = 100, .max_send_sge = 1}, {.max_send_wqebb = 256}),
      Limit::kSendRingSize, 512, 256);
  // The kernel derives the basic blocks from the same figure as max_qp_wr.
  ExpectRefusal(
      Mlx5({.max_send_wr = 100, .max_send_sge = 1}, {.max_qp_wr = 256}),
      Limit::kSendRingSize, 512, 256);
  ExpectRefusal(Mlx5({.max_recv_wr = 257}, {.max_qp_wr = 256}),
                Limit::kMaxRecvWr, 257, 256);
  ExpectRefusal(
      CompletionQueueMemory(Provider::kMlx5, {.max_cqe = 4194303}, 4194304),
      Limit::kMaxCqe, 4194304, 4194303);
  EXPECT_EQ(
      CompletionQueueMemory(Provider::kMlx5, {.cqe_size = 128}, 255).completion,
      (Charge{32768, 0}));
}

}  // namespace
}  // namespace purser::queue_memory
