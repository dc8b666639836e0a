// SPDX-License-Identifier: Apache-2.0
#include "sidecar/completion_choice.h"

#include <iostream>
#include <random>

#include "gtest/gtest.h"
#include "queue_memory/fit.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using queue_memory::DeviceLimits;
using queue_memory::Provider;
using queue_memory::QueuePairRequest;
using Kind = CompletionOffer::Kind;
using Choice = CompletionChoice::Kind;

// What CompletionQueueSet does with the choices of queue pairs that only come.
class Queues {
 public:
  Queues(Provider provider, DeviceLimits limits, Kind kind)
      : provider_(provider), limits_(limits), offer_{.kind = kind} {}

  CompletionChoice Add(uint64_t slots) {
    const CompletionChoice choice =
        ChooseCompletionQueue(provider_, limits_, slots, offer_);
    EXPECT_FALSE(choice.memory.refusal);
    EXPECT_EQ(choice.room, slots);
    bytes_ += choice.growth.total();
    if (choice.kind == Choice::kOwn) {
      EXPECT_GE(choice.memory.completion_ring.slots, slots);
      return choice;
    }
    if (choice.kind == Choice::kFurther) offer_.shared.emplace_back();
    CompletionOffer::Shared& shared = choice.kind == Choice::kFurther
                                          ? offer_.shared.back()
                                          : offer_.shared.at(choice.existing);
    shared.slots += slots;
    if (choice.cqe != 0) {
      shared.cqe = choice.memory.cap_cqe;
      shared.charged = choice.memory.total();
    }
    EXPECT_GE(shared.cqe, queue_memory::WithHeadroom(shared.slots))
        << "a fifth more than what can be posted";
    return choice;
  }
  uint64_t bytes() const { return bytes_; }
  CompletionOffer& offer() { return offer_; }

 private:
  const Provider provider_;
  const DeviceLimits limits_;
  CompletionOffer offer_;
  uint64_t bytes_ = 0;
};

uint64_t SlotsOf(Provider provider, uint32_t send_wr, uint32_t recv_wr) {
  const auto memory = queue_memory::QueuePairMemory(provider, {},
                                                    {.max_send_wr = send_wr,
                                                     .max_send_sge = 2,
                                                     .max_recv_wr = recv_wr,
                                                     .max_recv_sge = 1});
  return memory.refusal
             ? 0
             : uint64_t{memory.send_ring.slots} + memory.receive_ring.slots;
}

TEST(CompletionChoiceTest, OneOfItsOwnHasAnEntryForEverySlot) {
  const CompletionChoice own =
      ChooseCompletionQueue(Provider::kRxe, {}, 254, {});
  EXPECT_EQ(own.kind, Choice::kOwn);
  EXPECT_EQ(own.cqe, 254u);
  EXPECT_EQ(own.room, 254u);
  EXPECT_EQ(own.growth, own.memory.total());
  EXPECT_EQ(ChooseCompletionQueue(Provider::kRxe, {}, 0, {}).cqe, 1u);
}

TEST(CompletionChoiceTest, OneThatIsTooSmallForTheDeviceGivesLessRoom) {
  const DeviceLimits limits{.max_cqe = 1000};
  for (const Kind kind : {Kind::kOwn, Kind::kShared}) {
    const CompletionChoice choice =
        ChooseCompletionQueue(Provider::kRxe, limits, 1500, {.kind = kind});
    EXPECT_EQ(choice.cqe, 1000u);
    EXPECT_EQ(choice.room, 1000u);
  }
}

TEST(CompletionChoiceTest, ASharedOneIsUsedThenGrownThenThereIsAFurtherOne) {
  Queues queues(Provider::kRxe, {.max_cqe = 2047}, Kind::kShared);
  CompletionChoice choice = queues.Add(400);  // 480 of 511
  EXPECT_EQ(choice.kind, Choice::kFurther);
  EXPECT_EQ(choice.cqe, 480u);
  choice = queues.Add(20);  // 504
  EXPECT_EQ(choice.kind, Choice::kExisting);
  EXPECT_EQ(choice.cqe, 0u);
  EXPECT_EQ(choice.growth.total(), 0u);
  choice = queues.Add(400);  // 984
  EXPECT_EQ(choice.kind, Choice::kExisting);
  EXPECT_EQ(choice.cqe, 984u);
  EXPECT_EQ(choice.growth.total(),
            choice.memory.total().total() -
                queue_memory::CompletionQueueMemory(Provider::kRxe, {}, 480)
                    .total()
                    .total());
  choice = queues.Add(1200);  // 2424 are more than the device has
  EXPECT_EQ(choice.kind, Choice::kFurther);
}

TEST(CompletionChoiceTest, OneThatTheDeviceDoesNotGrowIsUsedAsItIs) {
  Queues queues(Provider::kRxe, {}, Kind::kShared);
  queues.Add(400);
  queues.offer().shared[0].may_grow = false;
  EXPECT_EQ(queues.Add(20).kind, Choice::kExisting);
  EXPECT_EQ(queues.Add(100).kind, Choice::kFurther);
}

// Each receive of a shared receive queue may complete in any of the completion
// queues of its queue pairs.
TEST(CompletionChoiceTest, SharedReceivesHaveRoomOncePerCompletionQueue) {
  CompletionOffer offer{.kind = Kind::kShared, .extra_slots = 255};
  CompletionChoice choice =
      ChooseCompletionQueue(Provider::kRxe, {}, 127, offer);
  EXPECT_EQ(choice.cqe, queue_memory::WithHeadroom(127 + 255));
  EXPECT_EQ(choice.room, 127u) << "its own";
  offer.shared = {{.slots = 382, .extra_slots = 0, .cqe = 1023}};
  choice = ChooseCompletionQueue(Provider::kRxe, {}, 127, offer);
  EXPECT_EQ(choice.kind, Choice::kExisting);
  EXPECT_EQ(choice.cqe, 0u);
  offer.shared[0].extra_slots = 1023;
  EXPECT_EQ(ChooseCompletionQueue(Provider::kRxe, {}, 127, offer).cqe,
            queue_memory::WithHeadroom(382 + 1023 + 127));
  offer.extra_slots = 1000;
  offer.shared.clear();
  choice = ChooseCompletionQueue(Provider::kRxe, {.max_cqe = 1000}, 127, offer);
  EXPECT_EQ(choice.memory.refusal.limit, queue_memory::Limit::kMaxCqe);
}

// The default: never dearer than one for each queue pair.
TEST(CompletionChoiceTest, TheCheapestIsNeverDearerThanOneForEach) {
  std::mt19937 random(1);
  for (const Provider provider : queue_memory::KnownProviders()) {
    for (int round = 0; round < 20; ++round) {
      Queues own(provider, {}, Kind::kOwn);
      Queues cheapest(provider, {}, Kind::kCheapest);
      for (int i = 0; i < 60; ++i) {
        const uint64_t slots =
            SlotsOf(provider, 1 + random() % 600, 1 + random() % 300);
        if (slots == 0) continue;
        own.Add(slots);
        cheapest.Add(slots);
        ASSERT_LE(cheapest.bytes(), own.bytes())
            << queue_memory::ProviderName(provider);
      }
    }
  }
}

// For docs/adr: bytes of completion queues of 50 equal queue pairs.
TEST(CompletionChoiceTest, WhatSharingSaves) {
  std::string text =
      "\n50 queue pairs, completion queues in KiB: each its own, one shared, "
      "cheapest\n";
  for (const Provider provider :
       {Provider::kMlx5, Provider::kRxe, Provider::kIrdma}) {
    for (const auto& [send_wr, recv_wr] :
         {std::pair(16u, 16u), std::pair(128u, 16u), std::pair(128u, 128u),
          std::pair(256u, 256u), std::pair(300u, 100u)}) {
      uint64_t bytes[3] = {};
      int i = 0;
      for (const Kind kind : {Kind::kOwn, Kind::kShared, Kind::kCheapest}) {
        Queues queues(provider, {}, kind);
        for (int n = 0; n < 50; ++n)
          queues.Add(SlotsOf(provider, send_wr, recv_wr));
        bytes[i++] = queues.bytes() / 1024;
      }
      text += fmt::format("  {:6} {}/{}: {} {} {}\n",
                          queue_memory::ProviderName(provider), send_wr,
                          recv_wr, bytes[0], bytes[1], bytes[2]);
      EXPECT_LE(bytes[2], bytes[0]);
    }
  }
  std::cout << text;
}

}  // namespace
}  // namespace purser::sidecar
