// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "queue_memory/queue_memory.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

QueueMemory Rxe(const QueuePairRequest& request, DeviceLimits limits = {}) {
  return QueuePairMemory(Provider::kRxe, limits, request);
}

// The shapes measured on a running kernel, against the areas of
// /proc/vmallocinfo and the process's mappings.
TEST(Rxe, MeasuredRings) {
  struct {
    QueuePairRequest request;
    uint64_t send, receive, page_arrays;
  } shapes[] = {
      {{.max_send_wr = 256,
        .max_send_sge = 4,
        .max_recv_wr = 256,
        .max_recv_sge = 1},
       266240,
       36864,
       0},
      {{.max_send_wr = 4096,
        .max_send_sge = 8,
        .max_recv_wr = 4096,
        .max_recv_sge = 1},
       4198400,
       528384,
       12288},
      {{.max_send_wr = 128,
        .max_send_sge = 2,
        .max_recv_wr = 128,
        .max_recv_sge = 1},
       69632,
       20480,
       0},
      {{.max_send_wr = 1024,
        .max_send_sge = 16,
        .max_recv_wr = 1024,
        .max_recv_sge = 1},
       1052672,
       135168,
       0},
      {{.max_send_wr = 4096,
        .max_send_sge = 16,
        .max_recv_wr = 1,
        .max_recv_sge = 1},
       4198400,
       4096,
       12288},
  };
  for (const auto& shape : shapes) {
    const QueueMemory memory = Rxe(shape.request);
    EXPECT_EQ(memory.send, (Charge{0, shape.send}));
    EXPECT_EQ(memory.receive, (Charge{0, shape.receive}));
    EXPECT_EQ(memory.overhead, (Charge{464, shape.page_arrays}));
    EXPECT_EQ(memory.arrays, Charge());
    EXPECT_EQ(memory.buffer_bytes, shape.send + shape.receive);
  }
}

// Only a ring above 512 pages has its page array in a vmalloc area: at 2047
// work requests of 1 KiB the ring is 2 MiB and its header makes it 513 pages.
TEST(Rxe, PageArrayBeginsAbove512Pages) {
  const QueuePairRequest just_below = {.max_send_wr = 1023, .max_send_sge = 32};
  EXPECT_EQ(Rxe(just_below).send.node / 4096, 257u);
  EXPECT_EQ(Rxe(just_below).overhead.node, 0u);
  const QueuePairRequest above = {.max_send_wr = 2047, .max_send_sge = 32};
  EXPECT_EQ(Rxe(above).send.node / 4096, 513u);
  EXPECT_EQ(Rxe(above).overhead.node, 8192u);
}

TEST(Rxe, BothRingsAndTheCompletionQueueHavePageArrays) {
  const QueuePairRequest request = {.max_send_wr = 4096,
                                    .max_send_sge = 16,
                                    .max_recv_wr = 65535,
                                    .max_recv_sge = 1};
  // 65536 x 64 + header = 1025 pages, too.
  EXPECT_EQ(Rxe(request).overhead.node, 2 * 12288u);
  const QueueMemory cq = CompletionQueueMemory(Provider::kRxe, {}, 16382);
  EXPECT_EQ(cq.completion, (Charge{0, 2101248}));  // 513 pages
  EXPECT_EQ(cq.overhead, (Charge{344, 8192}));
}

// A ring above 1 GiB: its page array (2 MiB and more) is an area of more than
// 512 pages itself.
TEST(Rxe, PageArrayOfAPageArray) {
  const QueueMemory memory = Rxe({.max_send_wr = 1u << 20, .max_send_sge = 32});
  EXPECT_EQ(memory.send_ring.bytes, uint64_t{2} << 30);
  const uint64_t pages = (uint64_t{2} << 30) / 4096 + 1;
  EXPECT_EQ(memory.send.node, pages * 4096);
  const uint64_t array = (pages * 8 + 4095) / 4096 * 4096;
  EXPECT_EQ(memory.overhead.node,
            array + (array / 4096 * 8 + 4095) / 4096 * 4096);
}

TEST(Rxe, PostableSlotsAreOneFewerThanTheRing) {
  for (const auto& [asked, slots] : {std::pair{0u, 0u},
                                     {1u, 1u},
                                     {2u, 3u},
                                     {16u, 31u},
                                     {32u, 63u},
                                     {100u, 127u},
                                     {127u, 127u},
                                     {128u, 255u}}) {
    const QueueMemory memory = Rxe({.max_send_wr = asked,
                                    .max_send_sge = 1,
                                    .max_recv_wr = asked,
                                    .max_recv_sge = 1});
    EXPECT_EQ(memory.send_ring.slots, slots);
    EXPECT_EQ(memory.receive_ring.slots, slots);
    EXPECT_EQ(memory.cap_send_wr, slots);
    EXPECT_EQ(memory.cap_recv_wr, slots);
  }
}

// Linux 6.1 writes back what was asked; the memory is the same.
TEST(Rxe, WriteBackOfOlderKernels) {
  const QueuePairRequest request = {.max_send_wr = 100,
                                    .max_send_sge = 3,
                                    .max_inline_data = 100,
                                    .max_recv_wr = 16,
                                    .max_recv_sge = 2};
  const QueueMemory newer = Rxe(request);
  const QueueMemory older = Rxe(request, {.writes_back_real_slots = false});
  EXPECT_EQ(newer.cap_send_wr, 127u);
  EXPECT_EQ(newer.cap_recv_wr, 31u);
  EXPECT_EQ(older.cap_send_wr, 100u);
  EXPECT_EQ(older.cap_recv_wr, 16u);
  for (const QueueMemory& memory : {newer, older}) {
    EXPECT_EQ(memory.send_ring.slots, 127u);
    EXPECT_EQ(memory.cap_send_sge, 6u);  // 100 bytes inline hold 6 entries
    EXPECT_EQ(memory.cap_inline_data, 100u);
    EXPECT_EQ(memory.cap_recv_sge, 2u);
    EXPECT_EQ(memory.total(), newer.total());
  }
}

TEST(Rxe, ReceiveRingEvenWithoutReceives) {
  const QueueMemory memory = Rxe({.max_send_wr = 1, .max_send_sge = 1});
  EXPECT_EQ(memory.receive, (Charge{0, 4096}));
  EXPECT_EQ(memory.receive_ring.slots, 0u);
}

TEST(Rxe, NoReceiveRingWithSrqAndItsLimitsAreNotChecked) {
  const QueueMemory memory = Rxe({.max_send_wr = 1,
                                  .max_send_sge = 1,
                                  .max_recv_wr = UINT32_MAX,
                                  .max_recv_sge = UINT32_MAX,
                                  .uses_srq = true});
  ASSERT_FALSE(memory.refusal);
  EXPECT_EQ(memory.receive, Charge());
  EXPECT_EQ(memory.buffer_bytes, 4096u);
  EXPECT_EQ(memory.cap_recv_wr, UINT32_MAX);
}

TEST(Rxe, SharedReceivesHaveAtLeastOneSge) {
  const QueueMemory memory =
      SharedReceiveQueueMemory(Provider::kRxe, {}, {.max_wr = 100});
  EXPECT_EQ(memory.cap_srq_sge, 1u);
  EXPECT_EQ(memory.total(),
            SharedReceiveQueueMemory(Provider::kRxe, {},
                                     {.max_wr = 100, .max_sge = 1})
                .total());
}

void ExpectRefusal(const QueueMemory& memory, Limit limit, uint64_t asked,
                   uint64_t allowed) {
  EXPECT_STREQ(LimitName(memory.refusal.limit), LimitName(limit));
  EXPECT_EQ(memory.refusal.asked, asked);
  EXPECT_EQ(memory.refusal.allowed, allowed);
  EXPECT_EQ(memory.total(), Charge());
}

TEST(Rxe, RefusalsNameTheLimit) {
  ExpectRefusal(Rxe({.type = QueuePairType::kXrcSend}), Limit::kQueuePairType,
                static_cast<uint64_t>(QueuePairType::kXrcSend), 0);
  ExpectRefusal(Rxe({.type = QueuePairType::kRawPacket}), Limit::kQueuePairType,
                static_cast<uint64_t>(QueuePairType::kRawPacket), 0);
  ExpectRefusal(Rxe({.max_send_wr = (1u << 20) + 1}), Limit::kMaxSendWr,
                (1u << 20) + 1, 1u << 20);
  ExpectRefusal(Rxe({.max_recv_wr = UINT32_MAX}), Limit::kMaxRecvWr, UINT32_MAX,
                1u << 20);
  ExpectRefusal(Rxe({.max_send_sge = 33}), Limit::kMaxSendSge, 33, 32);
  ExpectRefusal(Rxe({.max_recv_sge = 33}), Limit::kMaxRecvSge, 33, 32);
  ExpectRefusal(Rxe({.max_inline_data = 513}), Limit::kMaxInlineData, 513, 512);
  ExpectRefusal(CompletionQueueMemory(Provider::kRxe, {}, 32768),
                Limit::kMaxCqe, 32768, 32767);
  ExpectRefusal(CompletionQueueMemory(Provider::kRxe, {}, 0), Limit::kMaxCqe, 0,
                32767);
}

TEST(Rxe, WhatTheDeviceTellsWins) {
  const DeviceLimits told = {.max_qp_wr = 0x4000,
                             .max_sge = 16,
                             .max_cqe = 100,
                             .max_inline_data = 400};
  ExpectRefusal(Rxe({.max_send_wr = 0x4001}, told), Limit::kMaxSendWr, 0x4001,
                0x4000);
  ExpectRefusal(Rxe({.max_recv_wr = 0x4001}, told), Limit::kMaxRecvWr, 0x4001,
                0x4000);
  ExpectRefusal(Rxe({.max_send_sge = 17}, told), Limit::kMaxSendSge, 17, 16);
  ExpectRefusal(Rxe({.max_recv_sge = 17}, told), Limit::kMaxRecvSge, 17, 16);
  ExpectRefusal(Rxe({.max_inline_data = 401}, told), Limit::kMaxInlineData, 401,
                400);
  ExpectRefusal(CompletionQueueMemory(Provider::kRxe, told, 101),
                Limit::kMaxCqe, 101, 100);
  EXPECT_FALSE(Rxe({.max_send_wr = 0x4000,
                    .max_send_sge = 16,
                    .max_inline_data = 400,
                    .max_recv_wr = 0x4000,
                    .max_recv_sge = 16},
                   told)
                   .refusal);
  // More than the default, too.
  EXPECT_FALSE(Rxe({.max_send_sge = 64}, {.max_sge = 64}).refusal);
  EXPECT_EQ(Rxe({.max_send_wr = 1, .max_send_sge = 1}, {.page_size = 65536})
                .send.node,
            65536u);
}

}  // namespace
}  // namespace purser::queue_memory
