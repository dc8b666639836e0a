// SPDX-License-Identifier: Apache-2.0
//
// Figures that the providers' own code gave apart from the golden rows, and
// what the rows do not have: shared receive queues, other generations, what a
// device tells.
#include <gtest/gtest.h>

#include "queue_memory/queue_memory.h"
#include "queue_memory/registry.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

QueueMemory On(const char* profile_name, const QueuePairRequest& request) {
  const DeviceProfile* profile = FindProfile(profile_name);
  EXPECT_NE(profile, nullptr) << profile_name;
  return QueuePairMemory(profile->provider, profile->limits, request);
}

// Receives: as many, of one SGE.
QueuePairRequest Shape(uint32_t wr, uint32_t sge, uint32_t inline_data = 0,
                       QueuePairType type = QueuePairType::kRc) {
  return {.type = type,
          .max_send_wr = wr,
          .max_send_sge = sge,
          .max_inline_data = inline_data,
          .max_recv_wr = wr,
          .max_recv_sge = 1};
}

TEST(Worked, RingsAndArrays) {
  constexpr QueuePairType kUd = QueuePairType::kUd;
  const struct {
    const char* profile;
    QueuePairRequest request;
    uint64_t bytes;
  } rows[] = {
      {"mlx5", Shape(256, 4), 88064},
      {"mlx5", Shape(256, 4, 64), 169984},
      {"mlx5", Shape(4096, 8, 64), 2719744},
      {"mlx5", Shape(1024, 16), 679936},
      {"mlx5", Shape(8192, 1), 2818048},
      {"mlx5", Shape(256, 4, 220), 169984},
      {"mlx5", Shape(256, 4, 0, kUd), 47104},
      {"mlx5", Shape(4096, 8, 0, kUd), 1409024},
      {"mlx5", Shape(128, 2, 0, kUd), 25600},
      {"mlx5", Shape(1024, 16, 0, kUd), 679936},
      {"mlx4", Shape(256, 4), 75776},
      {"mlx4", Shape(4096, 8), 2260992},
      {"mlx4", Shape(128, 2), 23552},
      {"mlx4", Shape(128, 2, 64), 39936},
      {"mlx4", Shape(1024, 16), 1089536},
      {"irdma", Shape(256, 4, 64), 118848},
      {"irdma", Shape(128, 2), 59456},
      {"irdma", Shape(1024, 13), 868416},
      {"irdma", Shape(1, 1), 28800},
      {"rxe", Shape(256, 4), 303104},
      {"rxe", Shape(4096, 8), 4726784},
      {"rxe", Shape(128, 2, 64), 155648},
      {"rxe", Shape(255, 4), 155648},
      {"siw", Shape(256, 4), 61440},
      {"siw", Shape(128, 2), 32768},
  };
  for (const auto& row : rows) {
    const QueueMemory memory = On(row.profile, row.request);
    EXPECT_EQ(memory.buffer_bytes + memory.arrays.total(), row.bytes)
        << row.profile << " " << row.request.max_send_wr << "/"
        << row.request.max_send_sge << "/" << row.request.max_inline_data;
  }
}

// There the arrays lie in the buffer.
TEST(Worked, BnxtRe) {
  EXPECT_EQ(On("bnxt_re_pow2", Shape(256, 4)).buffer_bytes, 184320u);
  EXPECT_EQ(On("bnxt_re_pow2", Shape(128, 2)).buffer_bytes, 139264u);
  EXPECT_EQ(On("bnxt_re_pow2", Shape(4096, 6)).buffer_bytes, 2887680u);
  EXPECT_EQ(On("bnxt_re_p7", Shape(256, 4)).buffer_bytes, 204800u);
  EXPECT_EQ(On("bnxt_re_p7", Shape(128, 2)).buffer_bytes, 102400u);
  EXPECT_EQ(On("bnxt_re_p7", Shape(128, 2, 64)).buffer_bytes, 131072u);
  EXPECT_EQ(On("bnxt_re_p7", Shape(4096, 8)).buffer_bytes, 3272704u);
  EXPECT_EQ(On("bnxt_re", Shape(1024, 16)).refusal.limit, Limit::kSendWqeSize);
  EXPECT_EQ(On("bnxt_re_p7", Shape(1024, 16)).refusal.limit,
            Limit::kSendWqeSize);
  // A kernel answers with what an entry holds.
  EXPECT_EQ(On("bnxt_re_p7", Shape(128, 3, 1)).cap_inline_data, 48u);
}

TEST(Worked, SlotsThatCanBePosted) {
  EXPECT_EQ(On("mlx4", Shape(128, 2)).send_ring.slots, 223u);
  EXPECT_EQ(On("irdma", Shape(256, 4)).send_ring.slots, 447u);
  EXPECT_EQ(On("irdma", Shape(256, 4)).receive_ring.slots, 511u);
  EXPECT_EQ(On("bnxt_re", Shape(100, 1)).send_ring.slots, 100u);
  EXPECT_EQ(On("bnxt_re_pow2", Shape(100, 1)).send_ring.slots, 256u - 129);
  EXPECT_EQ(On("erdma", Shape(100, 1)).send_ring.slots, 128u);
  EXPECT_EQ(On("hns", Shape(3, 1)).send_ring.slots, 64u);
  EXPECT_EQ(On("mana", Shape(100, 1)).send_ring.slots, 128u);
  EXPECT_EQ(On("qedr", Shape(100, 1)).send_ring.slots, 100u);
  EXPECT_EQ(On("siw", Shape(100, 1)).send_ring.slots, 128u);
}

TEST(Worked, RefusalsNameTheLimit) {
  const auto limit = [](const char* profile, const QueuePairRequest& request) {
    return LimitName(On(profile, request).refusal.limit);
  };
  EXPECT_STREQ(limit("irdma", Shape(4096, 8)), "send ring size");
  EXPECT_STREQ(limit("irdma", Shape(1024, 16)), "max_send_sge");
  EXPECT_STREQ(limit("irdma", {.max_send_wr = 1, .max_recv_wr = 32768}),
               "receive ring size");
  EXPECT_STREQ(limit("erdma", {.max_send_wr = 1}), "least max_recv_wr");
  EXPECT_STREQ(limit("erdma", {.max_recv_wr = 1}), "least max_send_wr");
  EXPECT_STREQ(limit("siw", {.max_send_wr = 1}), "least max_recv_wr");
  EXPECT_STREQ(limit("hns", {.max_recv_wr = 1}), "least max_send_wr");
  EXPECT_STREQ(limit("hns", {.max_send_wr = 1, .max_recv_wr = 1}),
               "least max_recv_sge");
  EXPECT_STREQ(limit("efa", Shape(1, 1)), "queue pair type");
  QueuePairRequest ud = Shape(4097, 1, 0, QueuePairType::kUd);
  EXPECT_STREQ(limit("efa", ud), "max_send_wr");
  ud = {.type = QueuePairType::kUd, .max_send_wr = 1};
  EXPECT_STREQ(limit("efa", ud), "least max_recv_sge");
  EXPECT_STREQ(limit("bnxt_re", {.max_send_wr = 1, .max_recv_sge = 7}),
               "receive WQE size");
  QueuePairRequest sharing = Shape(1, 1);
  sharing.uses_srq = true;
  EXPECT_STREQ(limit("mana", sharing), "shared receive queue");
}

// efa: what each side pays, and the wider descriptor.
TEST(Worked, EfaIsPaidByBoth) {
  QueuePairRequest request = Shape(128, 2, 0, QueuePairType::kSrd);
  const QueueMemory memory = On("efa", request);
  EXPECT_EQ(memory.send, (Charge{128 * 64, 0}));
  EXPECT_EQ(memory.receive, (Charge{0, 4096}));
  EXPECT_EQ(memory.arrays, (Charge{256 * 12, 0}));
  request.max_inline_data = 33;
  EXPECT_EQ(On("efa", request).send, (Charge{128 * 128, 0}));
  EXPECT_EQ(QueuePairMemory(Provider::kEfa, {.efa = {.min_sq_wr = 512}},
                            Shape(128, 2, 0, QueuePairType::kSrd))
                .send,
            (Charge{512 * 64, 0}));
  EXPECT_EQ(CompletionQueueMemory(Provider::kEfa, {.efa = {.sub_cqs = 2}}, 1024)
                .completion,
            (Charge{0, 65536}));
}

TEST(Worked, EfaTakesAPowerOfTwoOfWhatTheDeviceHolds) {
  const DeviceLimits told = {.max_qp_wr = 10000,
                             .efa = {.max_llq_size = 300 * 64}};
  const auto limit = [&](uint32_t wr) {
    return QueuePairMemory(Provider::kEfa, told,
                           Shape(wr, 1, 0, QueuePairType::kSrd))
        .refusal;
  };
  EXPECT_FALSE(limit(256));
  EXPECT_EQ(limit(257).limit, Limit::kMaxSendWr);
  EXPECT_EQ(limit(257).allowed, 256u);
}

// Twice the entries are made only where the device has more than twice.
TEST(Worked, BnxtReDoublesCompletionQueuesBelowTheLimit) {
  const auto slots = [](uint32_t cqe) {
    return CompletionQueueMemory(Provider::kBnxtRe, {.max_cqe = 1000}, cqe)
        .completion_ring.slots;
  };
  EXPECT_EQ(slots(499), 998u);
  EXPECT_EQ(slots(500), 500u);
  EXPECT_EQ(slots(1000), 1000u);
}

TEST(Worked, IrdmaKeepsAReceiveRingOfOneBesideAnSrq) {
  QueuePairRequest request = Shape(256, 4);
  request.uses_srq = true;
  const QueueMemory memory = On("irdma", request);
  EXPECT_EQ(memory.exactness, Exactness::kExact);
  EXPECT_EQ(memory.receive, (Charge{4096, 0}));
  EXPECT_EQ(memory.receive_ring.bytes, 8u * 32);
}

TEST(Worked, IrdmaFirstGeneration) {
  const QueueMemory memory = On("irdma_gen1", Shape(256, 3, 48));
  ASSERT_FALSE(memory.refusal);
  EXPECT_EQ(memory.exactness, Exactness::kEstimated);
  EXPECT_EQ(memory.send_ring.stride, 64u);
  EXPECT_EQ(On("irdma_gen1", Shape(256, 4)).refusal.limit, Limit::kMaxSendSge);
  EXPECT_EQ(On("irdma_gen1", Shape(256, 1, 49)).refusal.limit,
            Limit::kMaxInlineData);
  const DeviceProfile* gen1 = FindProfile("irdma_gen1");
  EXPECT_EQ(CompletionQueueMemory(gen1->provider, gen1->limits, 256)
                .completion.container,
            12288u)
      << "not doubled";
}

// vmalloc'ed rings above 512 pages have a page array that is one itself.
TEST(Worked, SiwHasPageArrays) {
  EXPECT_EQ(On("siw", Shape(16384, 1)).overhead, (Charge{264, 0}));
  // 32768 x 120 = 960 pages, 32768 x 112 = 896 pages; 8 bytes each.
  EXPECT_EQ(On("siw", Shape(32768, 1)).overhead, (Charge{264, 8192 + 8192}));
}

// A segment that links the entries, and one entry more.
TEST(Worked, SharedReceiveQueues) {
  const QueueMemory mlx5 =
      SharedReceiveQueueMemory(Provider::kMlx5, {}, {4095, 1});
  EXPECT_EQ(mlx5.shared_receive, (Charge{4096 * 32, 0}));
  EXPECT_EQ(mlx5.arrays, (Charge{4096 * 8, 0}));
  EXPECT_EQ(mlx5.cap_srq_wr, 4095u);
  EXPECT_EQ(mlx5.exactness, Exactness::kEstimated);
  EXPECT_EQ(
      SharedReceiveQueueMemory(Provider::kMlx5, {}, {4096, 1}).shared_receive,
      (Charge{8192 * 32, 0}));
  // Asked 100, holds 127.
  const QueueMemory rxe =
      SharedReceiveQueueMemory(Provider::kRxe, {}, {100, 1});
  EXPECT_EQ(rxe.shared_receive_ring.slots, 127u);
  EXPECT_EQ(rxe.shared_receive, (Charge{0, 12288}));
  EXPECT_EQ(SharedReceiveQueueMemory(Provider::kRxe, {}, {0, 1}).refusal.limit,
            Limit::kLeastSrqWr);
  const DeviceLimits told = {.max_srq_wr = 10, .max_srq_sge = 2};
  EXPECT_EQ(
      SharedReceiveQueueMemory(Provider::kRxe, told, {11, 1}).refusal.limit,
      Limit::kMaxSrqWr);
  EXPECT_EQ(
      SharedReceiveQueueMemory(Provider::kRxe, told, {10, 3}).refusal.limit,
      Limit::kMaxSrqSge);
  EXPECT_EQ(SharedReceiveQueueMemory(Provider::kEfa, {}, {10, 1}).refusal.limit,
            Limit::kSharedReceiveQueue);
}

// Kernel objects and adapter context are apart from the total.
TEST(Worked, ContextIsAnEstimateBesideTheTotal) {
  const QueueMemory mlx5 = On("mlx5", Shape(256, 4));
  EXPECT_EQ(mlx5.context, (Charge{0, 4096 + 1024 + 17 * 16}));
  EXPECT_EQ(mlx5.total(), (Charge{88064 + 992 + 64, 0}));
  EXPECT_EQ(On("rxe", Shape(256, 4)).context, (Charge{0, 4096}));
  const QueueMemory both =
      Sum(mlx5, CompletionQueueMemory(Provider::kMlx5, {}, 511));
  EXPECT_EQ(both.context.node, mlx5.context.node + 1024 + 128 + 8 * 16);
  EXPECT_EQ(On("mlx5", Shape(1u << 30, 4)).context, Charge());
}

// The kernel makes every one as large as the device has them.
TEST(Worked, OcrdmaCompletionQueuesHaveOneSize) {
  const auto of = [](uint32_t cqe, const DeviceLimits& limits) {
    return CompletionQueueMemory(Provider::kOcrdma, limits, cqe);
  };
  const DeviceLimits told = {.max_cqe = 8192};
  EXPECT_EQ(of(10, told).completion.node, 131072u);
  EXPECT_EQ(of(8192, told).completion.node, 131072u);
  EXPECT_EQ(of(10, told).completion_ring.slots, 8192u);
  EXPECT_EQ(of(10, {}).completion.node, 4096u);
}

}  // namespace
}  // namespace purser::queue_memory
