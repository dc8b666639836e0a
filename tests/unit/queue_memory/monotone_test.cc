// SPDX-License-Identifier: Apache-2.0
//
// More asked costs no less, but for the exceptions named here.
#include <gtest/gtest.h>

#include "queue_memory/fit.h"
#include "tests/unit/queue_memory/arbitrary.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

// Once refused, always refused (but for a least that was not reached); the cost
// by payer never falls. `slack`: container bytes by which it may, all the same.
void ExpectNotLess(const QueueMemory& more, const QueueMemory& less,
                   uint64_t slack) {
  if (more.refusal || IsLeast(less.refusal.limit)) return;
  ASSERT_FALSE(less.refusal) << LimitName(less.refusal.limit);
  EXPECT_GE(more.total().container + slack, less.total().container);
  EXPECT_GE(more.total().node, less.total().node);
  EXPECT_GE(more.send.total(), less.send.total());
  EXPECT_GE(more.receive.total(), less.receive.total());
  EXPECT_GE(more.completion.total(), less.completion.total());
  EXPECT_GE(more.shared_receive.total(), less.shared_receive.total());
  EXPECT_GE(more.context.node, less.context.node);
}

// Every exception to "more asked costs no less", in bytes:
uint64_t Slack(Provider provider, const QueueMemory& less,
               uint32_t QueuePairRequest::*field) {
  const bool is_depth = field == &QueuePairRequest::max_send_wr ||
                        field == &QueuePairRequest::max_recv_wr;
  switch (provider) {
    case Provider::kMlx4:
      // Larger entries need fewer spare ones, and so fewer ids.
      return is_depth ? 0 : less.arrays.container;
    case Provider::kMlx5:
      // A receive ring has at least 64 bytes: more bytes an entry make fewer
      // entries of it, and so up to 24 bytes less of their ids.
      return less.receive_ring.bytes == 64 ? 24 : 0;
    case Provider::kEfa:
      // The ring is a power of two of SGEs: more of them in an entry may make
      // fewer entries.
      return field == &QueuePairRequest::max_recv_sge ? less.arrays.container
                                                      : 0;
    default:
      return 0;
  }
}

constexpr uint32_t QueuePairRequest::*kFields[] = {
    &QueuePairRequest::max_send_wr, &QueuePairRequest::max_send_sge,
    &QueuePairRequest::max_inline_data, &QueuePairRequest::max_recv_wr,
    &QueuePairRequest::max_recv_sge};

TEST(Monotone, CostsNeverFallWhenMoreIsAsked) {
  for (const DeviceProfile& profile : Profiles()) {
    Arbitrary arbitrary(1);
    int granted = 0;
    for (int i = 0; i < 3000; ++i) {
      QueuePairRequest less = arbitrary.Sensible();
      less.type = TypeOf(profile.provider, less.type);
      if (i % 3 != 0) less.max_send_sge %= 8, less.max_recv_sge %= 4;
      if (i % 3 == 1) less.max_inline_data %= 100;
      for (const auto field : kFields) {
        QueuePairRequest more = less;
        more.*field += i % 2 == 0 ? 1 : arbitrary.Up(1000);
        SCOPED_TRACE(testing::Message()
                     << profile.name << " send " << less.max_send_wr << "/"
                     << less.max_send_sge << "/" << less.max_inline_data
                     << " recv " << less.max_recv_wr << "/"
                     << less.max_recv_sge);
        const QueueMemory of_less =
            QueuePairMemory(profile.provider, profile.limits, less);
        granted += !of_less.refusal;
        ExpectNotLess(QueuePairMemory(profile.provider, profile.limits, more),
                      of_less, Slack(profile.provider, of_less, field));
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(granted, 400) << profile.name;
  }
}

TEST(Monotone, SlotsNeverFallWhenMoreIsAsked) {
  for (const DeviceProfile& profile : Profiles()) {
    const auto of = [&](uint32_t wr) {
      return QueuePairMemory(
          profile.provider, profile.limits,
          {.type = TypeOf(profile.provider, QueuePairType::kRc),
           .max_send_wr = wr,
           .max_recv_wr = wr,
           .max_recv_sge = 1});
    };
    QueueMemory less = of(1);
    ASSERT_FALSE(less.refusal) << profile.name;
    for (uint32_t wr = 2; wr <= 8192; ++wr) {
      const QueueMemory more = of(wr);
      if (more.refusal) continue;
      ASSERT_LE(less.send_ring.slots, more.send_ring.slots) << profile.name;
      ASSERT_LE(less.receive_ring.slots, more.receive_ring.slots)
          << profile.name;
      ASSERT_GE(more.send_ring.slots, wr) << profile.name;
      ASSERT_GE(more.receive_ring.slots, wr) << profile.name;
      less = more;
    }
  }
}

// bnxt_re makes twice the entries, as long as the device has them: from half of
// max_cqe on the cost falls to half, once.
TEST(Monotone, CompletionQueuesNeverCostLessForMoreEntries) {
  for (const DeviceProfile& profile : Profiles())
    for (uint32_t cqe = 1; cqe < 40000; ++cqe) {
      ExpectNotLess(
          CompletionQueueMemory(profile.provider, profile.limits, cqe + 1),
          CompletionQueueMemory(profile.provider, profile.limits, cqe), 0);
      if (HasFailure()) FAIL() << profile.name << " " << cqe;
    }
  const auto bnxt_re = [](uint32_t cqe) {
    return CompletionQueueMemory(Provider::kBnxtRe, {}, cqe).total().container;
  };
  EXPECT_NEAR(bnxt_re(524287) / 2, bnxt_re(524288), 8192);
}

// With a completion queue of its own, deeper costs no less either; but larger
// entries may, where fewer of them fit into the same ring, so that fewer
// completions need room.
TEST(Monotone, WithACompletionQueueOfItsOwn) {
  for (const DeviceProfile& profile : Profiles()) {
    Arbitrary arbitrary(8);
    const auto both = [&](const QueuePairRequest& request) {
      return QueuePairWithCompletionQueueMemory(profile.provider,
                                                profile.limits, request,
                                                CompletionQueueSize::kHeadroom)
          .memory;
    };
    for (int i = 0; i < 3000; ++i) {
      QueuePairRequest less = arbitrary.Sensible();
      less.type = TypeOf(profile.provider, less.type);
      less.max_send_sge %= 4, less.max_recv_sge %= 3;
      less.max_inline_data %= 90;
      for (const auto field : kFields) {
        QueuePairRequest more = less;
        more.*field += i % 2 == 0 ? 1 : arbitrary.Up(100);
        const bool is_depth = field == &QueuePairRequest::max_send_wr ||
                              field == &QueuePairRequest::max_recv_wr;
        const QueueMemory of_more = both(more), of_less = both(less);
        if (of_more.refusal || of_less.refusal) continue;
        const bool fewer =
            of_more.send_ring.slots < of_less.send_ring.slots ||
            of_more.receive_ring.slots < of_less.receive_ring.slots;
        ASSERT_FALSE(is_depth && fewer) << profile.name;
        ASSERT_TRUE(fewer ||
                    of_more.total().total() + 24 >= of_less.total().total())
            << profile.name << " send " << less.max_send_wr << "/"
            << less.max_send_sge << "/" << less.max_inline_data << " recv "
            << less.max_recv_wr << "/" << less.max_recv_sge;
      }
    }
  }
  // 100 sends: 32 KiB hold 128 of 256 bytes, or 102 of 320, for which half the
  // completion queue does.
  const auto mlx5 = [](uint32_t sge) {
    return QueuePairWithCompletionQueueMemory(
               Provider::kMlx5, {}, {.max_send_wr = 100, .max_send_sge = sge},
               CompletionQueueSize::kHeadroom)
        .memory;
  };
  EXPECT_EQ(mlx5(4).send_ring.slots, 128u);
  EXPECT_EQ(mlx5(5).send_ring.slots, 102u);
  EXPECT_EQ(mlx5(4).total().total() - mlx5(5).total().total(), 8192u);
}

TEST(Monotone, SharedReceiveQueuesNeverCostLessForMore) {
  for (const DeviceProfile& profile : Profiles()) {
    Arbitrary arbitrary(5);
    for (int i = 0; i < 3000; ++i) {
      const SharedReceiveQueueRequest less = {.max_wr = arbitrary.Up(40000),
                                              .max_sge = arbitrary.Up(8)};
      SharedReceiveQueueRequest more = less;
      (i % 2 == 0 ? more.max_wr : more.max_sge) += arbitrary.Up(100);
      ExpectNotLess(
          SharedReceiveQueueMemory(profile.provider, profile.limits, more),
          SharedReceiveQueueMemory(profile.provider, profile.limits, less), 0);
      if (HasFailure()) FAIL() << profile.name;
    }
  }
}

}  // namespace
}  // namespace purser::queue_memory
