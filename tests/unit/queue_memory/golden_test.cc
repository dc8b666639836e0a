// SPDX-License-Identifier: Apache-2.0
//
// Every golden row of the providers that have a rule, every figure in it.
#include "tests/unit/queue_memory/golden.h"

#include <gtest/gtest.h>

#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {
namespace {

void ExpectQueuePair(const GoldenQueuePair& row, const QueueMemory& memory) {
  SCOPED_TRACE(row);
  ASSERT_EQ(!memory.refusal, row.ok) << LimitName(memory.refusal.limit);
  EXPECT_EQ(memory.exactness, Exactness::kExact);
  if (!row.ok) {
    EXPECT_GT(memory.refusal.asked, memory.refusal.allowed);
    EXPECT_EQ(memory.total(), Charge());
    return;
  }
  EXPECT_EQ(memory.send_ring.bytes, row.sq_bytes);
  EXPECT_EQ(memory.receive_ring.bytes, row.rq_bytes);
  EXPECT_EQ(memory.buffer_bytes, row.buffer_bytes);
  EXPECT_EQ(memory.arrays.total(), row.heap_bytes);
  EXPECT_EQ(memory.cap_send_wr, row.cap_send_wr);
  EXPECT_EQ(memory.cap_send_sge, row.cap_send_sge);
  EXPECT_EQ(memory.cap_inline_data, row.cap_inline_data);
  EXPECT_EQ(memory.cap_recv_wr, row.cap_recv_wr);
  EXPECT_EQ(memory.cap_recv_sge, row.cap_recv_sge);
}

TEST(Golden, Mlx5QueuePairs) {
  const auto rows = ReadQueuePairs("mlx5");
  ASSERT_EQ(rows.size(), 1430u);
  for (const GoldenQueuePair& row : rows) {
    const QueueMemory memory =
        QueuePairMemory(Provider::kMlx5, {}, row.request);
    ExpectQueuePair(row, memory);
    // All of it is the container's: buffers, arrays, struct, doorbell record.
    if (!row.ok) continue;
    EXPECT_EQ(memory.total(),
              (Charge{row.buffer_bytes + row.heap_bytes + 992 + 64, 0}))
        << row;
  }
}

TEST(Golden, RxeQueuePairs) {
  const auto rows = ReadQueuePairs("rxe");
  ASSERT_EQ(rows.size(), 991u);
  for (const GoldenQueuePair& row : rows) {
    const QueueMemory memory = QueuePairMemory(Provider::kRxe, {}, row.request);
    ExpectQueuePair(row, memory);
    EXPECT_EQ((memory.send + memory.receive), (Charge{0, row.buffer_bytes}))
        << row;
    EXPECT_EQ(memory.overhead.container, row.ok ? 464u : 0u) << row;
  }
}

TEST(Golden, CompletionQueues) {
  int compared = 0;
  for (const GoldenCompletionQueue& row : ReadCompletionQueues()) {
    Provider provider = Provider::kUnknown;
    DeviceLimits limits;
    if (row.provider == "mlx5") provider = Provider::kMlx5;
    if (row.provider == "rxe") {
      provider = Provider::kRxe;
      limits.cqe_size = 64;  // these rows are of kernels before 5.13
    }
    if (row.provider == "mlx5_cqe128") {
      provider = Provider::kMlx5;
      limits.cqe_size = 128;
    }
    if (provider == Provider::kUnknown) continue;
    ++compared;
    SCOPED_TRACE(row);
    const QueueMemory memory = CompletionQueueMemory(provider, limits, row.cqe);
    ASSERT_EQ(!memory.refusal, row.ok);
    if (!row.ok) continue;
    EXPECT_EQ(memory.buffer_bytes, row.buffer_bytes);
    EXPECT_EQ(memory.cap_cqe, row.cap_cqe);
    EXPECT_EQ(memory.completion_ring.stride, row.cqe_size);
    if (provider == Provider::kMlx5) {
      EXPECT_EQ(memory.total(), (Charge{row.buffer_bytes + 616 + 64, 0}));
    } else {
      EXPECT_EQ(memory.completion, (Charge{0, row.buffer_bytes}));
    }
  }
  EXPECT_EQ(compared, 62 + 62 + 62);
}

// What ibv_create_cq returned and the kernel allocated on Linux 6.1: the
// mapping of the ring, and the array of its pages beside one of more than 512
// pages.
TEST(Golden, RxeCompletionQueuesAsMeasured) {
  struct Measured {
    uint32_t asked, cqe;
    uint64_t ring_bytes, page_array_bytes;
  };
  for (const Measured& measured : {Measured{1, 1, 4096, 0},
                                   {15, 15, 4096, 0},
                                   {16, 31, 8192, 0},
                                   {127, 127, 20480, 0},
                                   {128, 255, 36864, 0},
                                   {255, 255, 36864, 0},
                                   {256, 511, 69632, 0},
                                   {1022, 1023, 135168, 0},
                                   {16382, 16383, 2101248, 8192},
                                   {32767, 32767, 4198400, 12288}}) {
    SCOPED_TRACE(measured.asked);
    const QueueMemory memory =
        CompletionQueueMemory(Provider::kRxe, {}, measured.asked);
    EXPECT_EQ(memory.cap_cqe, measured.cqe);
    EXPECT_EQ(memory.completion, (Charge{0, measured.ring_bytes}));
    EXPECT_EQ(memory.overhead.node, measured.page_array_bytes);
  }
}

}  // namespace
}  // namespace purser::queue_memory
