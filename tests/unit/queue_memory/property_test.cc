// SPDX-License-Identifier: Apache-2.0
//
// What must hold for any arguments whatever: no arithmetic wraps up to 2^32 -
// 1, what is granted holds what was asked, refusals name their limit, and the
// functions are pure.
#include <gtest/gtest.h>

#include "tests/unit/queue_memory/arbitrary.h"
#include "tests/unit/queue_memory/golden.h"

namespace purser::queue_memory {
namespace {

using Wide = unsigned __int128;

// The parts add up to the total by arithmetic that cannot wrap.
void ExpectSum(const QueueMemory& memory) {
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
}

// What was granted holds what was asked. More receives than qedr takes are
// clipped.
void ExpectWide(Provider provider, const QueuePairRequest& request,
                const QueueMemory& memory) {
  const bool receives = !request.uses_srq &&
                        request.type != QueuePairType::kXrcSend &&
                        provider != Provider::kQedr;
  const Wide send_entries = Wide{memory.send_ring.stride} * request.max_send_wr;
  const Wide receive_entries =
      receives ? Wide{memory.receive_ring.stride} * request.max_recv_wr : 0;
  ASSERT_GE(memory.send_ring.bytes, send_entries);
  ASSERT_GE(memory.receive_ring.bytes, receive_entries);
  ASSERT_GE(memory.send.total(), memory.send_ring.bytes);
  ASSERT_GE(memory.receive.total(), memory.receive_ring.bytes);
  ASSERT_GE(memory.send_ring.slots, request.max_send_wr);
  ASSERT_TRUE(!receives || memory.receive_ring.slots >= request.max_recv_wr);
  ExpectSum(memory);
}

void ExpectNamed(const Refusal& refusal) {
  ASSERT_STRNE(LimitName(refusal.limit), "none");
  if (refusal.limit == Limit::kQueuePairType) return;
  if (IsLeast(refusal.limit)) {
    ASSERT_LT(refusal.asked, refusal.allowed);
  } else if (refusal.limit != Limit::kMaxCqe || refusal.asked != 0) {
    ASSERT_GT(refusal.asked, refusal.allowed);
  }
}

TEST(Property, NothingWrapsWhateverIsAskedOfWhateverDevice) {
  const std::vector<DeviceProfile> profiles = Profiles();
  Arbitrary arbitrary(2);
  int granted = 0;
  for (int i = 0; i < 60000; ++i) {
    QueuePairRequest request =
        i % 2 == 0 ? arbitrary.Any() : arbitrary.Sensible();
    const bool any_limits = i % 3 != 0;
    const DeviceLimits limits = arbitrary.AnyLimits();
    for (const DeviceProfile& profile : profiles) {
      if (i % 5 != 0) request.type = TypeOf(profile.provider, request.type);
      const QueueMemory memory = QueuePairMemory(
          profile.provider, any_limits ? limits : profile.limits, request);
      SCOPED_TRACE(profile.name);
      if (memory.refusal) {
        ASSERT_EQ(memory.total(), Charge());
        ASSERT_EQ(memory.context, Charge());
        ExpectNamed(memory.refusal);
      } else {
        ++granted;
        ExpectWide(profile.provider, request, memory);
      }
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(granted, 150000);
}

TEST(Property, NothingWrapsInCompletionQueues) {
  Arbitrary arbitrary(3);
  for (int i = 0; i < 60000; ++i) {
    const uint32_t cqe = arbitrary.Figure();
    const DeviceLimits limits = arbitrary.AnyLimits();
    for (const Provider provider : KnownProviders()) {
      const QueueMemory memory = CompletionQueueMemory(provider, limits, cqe);
      SCOPED_TRACE(testing::Message() << ProviderName(provider) << " " << cqe);
      if (memory.refusal) {
        ASSERT_EQ(memory.refusal.limit, Limit::kMaxCqe);
        ExpectNamed(memory.refusal);
        continue;
      }
      ASSERT_GE(memory.completion_ring.slots, cqe);
      ASSERT_GE(Wide{memory.completion_ring.bytes},
                Wide{memory.completion_ring.stride} * cqe);
      ASSERT_GE(memory.completion.total(), memory.completion_ring.bytes);
      ASSERT_GE(memory.cap_cqe, cqe);
      ExpectSum(memory);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Property, NothingWrapsInSharedReceiveQueues) {
  Arbitrary arbitrary(6);
  int granted = 0;
  for (int i = 0; i < 60000; ++i) {
    const SharedReceiveQueueRequest request = {
        .max_wr = arbitrary.Figure(),
        .max_sge = i % 2 == 0 ? arbitrary.Figure() : arbitrary.Up(32)};
    const DeviceLimits limits = arbitrary.AnyLimits();
    for (const Provider provider : KnownProviders()) {
      const QueueMemory memory =
          SharedReceiveQueueMemory(provider, limits, request);
      SCOPED_TRACE(ProviderName(provider));
      if (memory.refusal) {
        ExpectNamed(memory.refusal);
        continue;
      }
      ++granted;
      ASSERT_GE(memory.shared_receive_ring.slots, request.max_wr);
      ASSERT_GE(Wide{memory.shared_receive_ring.bytes},
                Wide{memory.shared_receive_ring.stride} * request.max_wr);
      ASSERT_GE(memory.shared_receive.total(),
                memory.shared_receive_ring.bytes);
      ExpectSum(memory);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(granted, 50000);
}

TEST(Property, TheSameQuestionHasTheSameAnswer) {
  Arbitrary arbitrary(4);
  for (int i = 0; i < 2000; ++i) {
    const QueuePairRequest request = arbitrary.Any();
    const DeviceLimits limits = arbitrary.AnyLimits();
    for (const Provider provider : KnownProviders()) {
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
