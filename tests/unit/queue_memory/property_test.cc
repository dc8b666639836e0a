// SPDX-License-Identifier: Apache-2.0
//
// What must hold for any arguments whatever: costs never fall when more is
// asked, no arithmetic wraps up to 2^32 - 1, and the functions are pure.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "queue_memory/queue_memory.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

using Wide = unsigned __int128;

constexpr Provider kProviders[] = {Provider::kUnknown, Provider::kMlx5,
                                   Provider::kRxe};
constexpr QueuePairType kTypes[] = {QueuePairType::kRc, QueuePairType::kUc,
                                    QueuePairType::kUd, QueuePairType::kXrcSend,
                                    QueuePairType::kRawPacket};

// Figures of all magnitudes, with those around powers of two more often.
class Arbitrary {
 public:
  explicit Arbitrary(uint32_t seed) : random_(seed) {}
  uint32_t Up(uint32_t most) { return Figure() % (uint64_t{most} + 1); }
  uint32_t Figure() {
    const uint32_t shifted =
        static_cast<uint32_t>(random_() >> (32 + random_() % 32));
    switch (random_() % 4) {
      case 0:
        return uint32_t{1} << (random_() % 32);
      case 1:
        return (uint32_t{1} << (random_() % 32)) - 1;
      case 2:
        return random_() % 8 == 0 ? UINT32_MAX : shifted;
      default:
        return shifted;
    }
  }
  QueuePairRequest Sensible() {
    return {.type = kTypes[random_() % std::size(kTypes)],
            .send_ops = static_cast<uint32_t>(random_() % 8),
            .max_send_wr = Up(40000),
            .max_send_sge = Up(40),
            .max_inline_data = Up(900),
            .max_recv_wr = Up(40000),
            .max_recv_sge = Up(40),
            .uses_srq = random_() % 4 == 0};
  }
  QueuePairRequest Any() {
    return {.type = kTypes[random_() % std::size(kTypes)],
            .send_ops = static_cast<uint32_t>(random_() % 8),
            .max_send_wr = Figure(),
            .max_send_sge = Figure(),
            .max_inline_data = Figure(),
            .max_recv_wr = Figure(),
            .max_recv_sge = Figure(),
            .uses_srq = random_() % 4 == 0};
  }
  DeviceLimits AnyLimits() {
    return {.max_qp_wr = Told(),
            .max_sge = Told(),
            .max_cqe = Told(),
            .max_inline_data = Told(),
            .max_sq_desc_sz = Told(),
            .max_rq_desc_sz = Told(),
            .max_send_wqebb = Told(),
            .cqe_size = Told(),
            .page_size = random_() % 2 == 0 ? 0 : 1u << (12 + random_() % 20),
            .writes_back_real_slots = random_() % 2 == 0};
  }
  uint64_t operator()() { return random_(); }

 private:
  uint32_t Told() { return random_() % 2 == 0 ? 0 : Figure(); }
  std::mt19937_64 random_;
};

// Once refused, always refused; the cost by payer, ring and part never falls.
void ExpectNotLess(const QueueMemory& more, const QueueMemory& less) {
  if (more.refusal) return;
  ASSERT_FALSE(less.refusal) << LimitName(less.refusal.limit);
  // mlx5 makes a receive ring of at least 64 bytes: more bytes an entry make
  // fewer entries of it, and so up to 24 bytes less of their ids.
  if (less.receive_ring.bytes == 64) {
    EXPECT_GE(more.total().container + 24, less.total().container);
    EXPECT_GE(more.total().node, less.total().node);
    return;
  }
  EXPECT_GE(more.total().container, less.total().container);
  EXPECT_GE(more.total().node, less.total().node);
  EXPECT_GE(more.send.total(), less.send.total());
  EXPECT_GE(more.receive.total(), less.receive.total());
  EXPECT_GE(more.completion.total(), less.completion.total());
  EXPECT_GE(more.arrays.total(), less.arrays.total());
  EXPECT_GE(more.buffer_bytes, less.buffer_bytes);
}

TEST(Property, CostsNeverFallWhenMoreIsAsked) {
  constexpr uint32_t QueuePairRequest::*kFields[] = {
      &QueuePairRequest::max_send_wr, &QueuePairRequest::max_send_sge,
      &QueuePairRequest::max_inline_data, &QueuePairRequest::max_recv_wr,
      &QueuePairRequest::max_recv_sge};
  Arbitrary arbitrary(1);
  for (int i = 0; i < 10000; ++i) {
    const QueuePairRequest less = arbitrary.Sensible();
    for (const auto field : kFields) {
      QueuePairRequest more = less;
      more.*field += i % 2 == 0 ? 1 : arbitrary.Up(1000);
      for (const Provider provider : kProviders) {
        SCOPED_TRACE(testing::Message()
                     << ProviderName(provider) << " send " << less.max_send_wr
                     << "/" << less.max_send_sge << "/" << less.max_inline_data
                     << " recv " << less.max_recv_wr << "/"
                     << less.max_recv_sge);
        ExpectNotLess(QueuePairMemory(provider, {}, more),
                      QueuePairMemory(provider, {}, less));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Property, SlotsNeverFallWhenMoreIsAsked) {
  for (const Provider provider : kProviders)
    for (uint32_t wr = 0; wr < 8192; ++wr) {
      const QueueMemory less =
          QueuePairMemory(provider, {}, {.max_send_wr = wr, .max_recv_wr = wr});
      const QueueMemory more = QueuePairMemory(
          provider, {}, {.max_send_wr = wr + 1, .max_recv_wr = wr + 1});
      if (more.refusal) continue;
      ASSERT_LE(less.send_ring.slots, more.send_ring.slots);
      ASSERT_LE(less.receive_ring.slots, more.receive_ring.slots);
      ASSERT_GE(less.send_ring.slots, wr);
      ASSERT_GE(less.receive_ring.slots, wr);
    }
}

TEST(Property, CompletionQueuesNeverCostLessForMoreEntries) {
  for (const Provider provider : kProviders)
    for (uint32_t cqe = 1; cqe < 40000; ++cqe)
      ExpectNotLess(CompletionQueueMemory(provider, {}, cqe + 1),
                    CompletionQueueMemory(provider, {}, cqe));
}

// What was granted holds what was asked, by arithmetic that cannot wrap.
void ExpectWide(const QueuePairRequest& request, const QueueMemory& memory) {
  const Wide send_entries = Wide{memory.send_ring.stride} * request.max_send_wr;
  const Wide receive_entries =
      request.uses_srq ? 0
                       : Wide{memory.receive_ring.stride} * request.max_recv_wr;
  ASSERT_GE(memory.send_ring.bytes, send_entries);
  ASSERT_GE(memory.receive_ring.bytes, receive_entries);
  ASSERT_GE(Wide{memory.send_ring.stride},
            request.max_send_wr == 0 ? 0 : Wide{16} * request.max_send_sge);
  ASSERT_GE(memory.send.total(), memory.send_ring.bytes);
  ASSERT_GE(memory.receive.total(), memory.receive_ring.bytes);
  Wide container = 0, node = 0;
  for (const Charge& part :
       {memory.send, memory.receive, memory.completion, memory.shared_receive,
        memory.arrays, memory.overhead}) {
    container += part.container;
    node += part.node;
  }
  ASSERT_EQ(container, Wide{memory.total().container});
  ASSERT_EQ(node, Wide{memory.total().node});
  ASSERT_LE(container + node, Wide{UINT64_MAX / 16});
  ASSERT_GE(container + node, Wide{memory.buffer_bytes});
  ASSERT_GE(memory.send_ring.slots, request.max_send_wr);
  ASSERT_TRUE(request.uses_srq ||
              memory.receive_ring.slots >= request.max_recv_wr);
}

TEST(Property, NothingWrapsWhateverIsAskedOfWhateverDevice) {
  Arbitrary arbitrary(2);
  int granted = 0;
  for (int i = 0; i < 100000; ++i) {
    const QueuePairRequest request =
        i % 2 == 0 ? arbitrary.Any() : arbitrary.Sensible();
    const DeviceLimits limits =
        i % 3 == 0 ? DeviceLimits{} : arbitrary.AnyLimits();
    for (const Provider provider : kProviders) {
      const QueueMemory memory = QueuePairMemory(provider, limits, request);
      if (memory.refusal) {
        ASSERT_EQ(memory.total(), Charge());
        ASSERT_TRUE(memory.refusal.limit == Limit::kQueuePairType ||
                    memory.refusal.asked > memory.refusal.allowed);
        continue;
      }
      ++granted;
      ExpectWide(request, memory);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(granted, 50000);
}

TEST(Property, NothingWrapsInCompletionQueues) {
  Arbitrary arbitrary(3);
  for (int i = 0; i < 100000; ++i) {
    const uint32_t cqe = arbitrary.Figure();
    const DeviceLimits limits = arbitrary.AnyLimits();
    for (const Provider provider : kProviders) {
      const QueueMemory memory = CompletionQueueMemory(provider, limits, cqe);
      if (memory.refusal) {
        ASSERT_TRUE(cqe == 0 || memory.refusal.asked > memory.refusal.allowed);
        continue;
      }
      ASSERT_GE(memory.completion_ring.slots, cqe);
      ASSERT_GE(Wide{memory.completion_ring.bytes},
                Wide{memory.completion_ring.stride} * cqe);
      ASSERT_GE(memory.completion.total(), memory.completion_ring.bytes);
      ASSERT_GE(memory.total().total(), memory.buffer_bytes);
      ASSERT_GE(memory.cap_cqe, cqe);
    }
  }
}

TEST(Property, TheSameQuestionHasTheSameAnswer) {
  Arbitrary arbitrary(4);
  for (int i = 0; i < 10000; ++i) {
    const QueuePairRequest request = arbitrary.Any();
    const DeviceLimits limits = arbitrary.AnyLimits();
    for (const Provider provider : kProviders) {
      const QueueMemory first = QueuePairMemory(provider, limits, request);
      QueuePairMemory(provider, {}, arbitrary.Sensible());
      const QueueMemory second = QueuePairMemory(provider, limits, request);
      ASSERT_EQ(first.total(), second.total());
      ASSERT_EQ(first.refusal.limit, second.refusal.limit);
      ASSERT_EQ(first.refusal.allowed, second.refusal.allowed);
      ASSERT_EQ(first.cap_send_wr, second.cap_send_wr);
    }
  }
}

}  // namespace
}  // namespace purser::queue_memory
