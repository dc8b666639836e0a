// SPDX-License-Identifier: Apache-2.0
//
// Queues that queue pairs share, on a real soft-RoCE device: a completion queue
// that grows while it is in use, and a shared receive queue. Every byte that
// moves is compared, and the kernel's own figures with the account.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "client/client.h"
#include "client/shared_region.h"
#include "tests/fakes/file_tree.h"
#include "tests/rxe/account.h"
#include "tests/rxe/kernel_oracle.h"
#include "tests/rxe/sidecar_process.h"

namespace purser::rxe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kCell = 256;  // bytes of each message

class ObjectsOnRxe : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "there is no rxe0; run it by tests/rxe/run";
    sidecar_ = std::make_unique<SidecarProcess>(tree_.root(), "512Mi");
    auto client = sidecar_->Connect("rxe-test");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    areas_ = ReadQueueAreas();
    mappings_ = ReadUverbsMappings(sidecar_->process().pid());
    auto region =
        client::SharedRegion::Create(*client_, tree_.root(), 1024 * kCell);
    ASSERT_TRUE(region.ok()) << region.status();
    region_.emplace(*std::move(region));
  }

  client::QueuePairSpec Spec() {
    client::QueuePairSpec spec;
    spec.cap.set_max_send_wr(100);
    spec.cap.set_max_send_sge(1);
    spec.cap.set_max_recv_wr(20);
    spec.cap.set_max_recv_sge(1);
    spec.completion_queue.set_shared("all");
    return spec;
  }
  client::QueuePair Create(const client::QueuePairSpec& spec) {
    auto queue_pair = client_->CreateQueuePair(spec);
    EXPECT_TRUE(queue_pair.ok()) << queue_pair.status();
    return *std::move(queue_pair);
  }
  static void Connect(client::QueuePair& a, client::QueuePair& b) {
    const auto there = a.Connect(b.local(), {.sq_psn = 1, .rq_psn = 2});
    const auto back = b.Connect(a.local(), {.sq_psn = 2, .rq_psn = 1});
    ASSERT_TRUE(there.ok()) << there;
    ASSERT_TRUE(back.ok()) << back;
  }

  // A message of its own content, and where it goes.
  std::byte* Cell(size_t index) { return region_->data() + index * kCell; }
  void FillCell(size_t index, size_t seed) {
    for (size_t i = 0; i < kCell; ++i)
      Cell(index)[i] = static_cast<std::byte>(seed * 131 + i * 7 + seed / 256);
  }
  bool SameCells(size_t a, size_t b) {
    return std::equal(Cell(a), Cell(a) + kCell, Cell(b));
  }
  v1::SendWorkRequest Write(uint64_t wr_id, size_t from, size_t to) {
    v1::SendWorkRequest request;
    request.set_wr_id(wr_id);
    request.set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
    *request.add_sg_list() = region_->Slice(from * kCell, kCell);
    request.set_remote_addr(region_->remote_addr() + to * kCell);
    request.set_rkey(region_->rkey());
    return request;
  }
  v1::SendWorkRequest Send(uint64_t wr_id, size_t from) {
    v1::SendWorkRequest request;
    request.set_wr_id(wr_id);
    request.set_opcode(v1::SEND_OPCODE_SEND);
    *request.add_sg_list() = region_->Slice(from * kCell, kCell);
    return request;
  }
  v1::ReceiveWorkRequest Receive(uint64_t wr_id, size_t to) {
    v1::ReceiveWorkRequest request;
    request.set_wr_id(wr_id);
    *request.add_sg_list() = region_->Slice(to * kCell, kCell);
    return request;
  }
  // `count` completions, all successful.
  std::vector<v1::WorkCompletion> Await(client::QueuePair& queue_pair,
                                        size_t count) {
    std::vector<v1::WorkCompletion> all;
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    while (all.size() < count && std::chrono::steady_clock::now() < end) {
      auto some = queue_pair.Poll(4096, milliseconds(500));
      EXPECT_TRUE(some.ok()) << some.status();
      if (!some.ok()) break;
      for (v1::WorkCompletion& completion : *some) {
        EXPECT_EQ(completion.status(), 0) << completion.status_name();
        EXPECT_EQ(completion.qp_num(), queue_pair.properties().qp_num());
        all.push_back(std::move(completion));
      }
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }

  void ExpectAccountEqualsKernel() {
    const Account account = ReadAccount(*client_);
    EXPECT_EQ(ReadUverbsMappings(sidecar_->process().pid()) - mappings_,
              account.rings);
    EXPECT_EQ(ReadQueueAreas().bytes - areas_.bytes,
              account.rings + account.overhead);
    auto budget = client_->Budget();
    ASSERT_TRUE(budget.ok()) << budget.status();
    EXPECT_EQ(budget->used().node_bytes() + budget->used().container_bytes(),
              account.charged);
  }
  void ExpectBaseline() {
    EXPECT_TRUE(
        Eventually(seconds(2), [&] { return ReadQueueAreas() == areas_; }));
    auto budget = client_->Budget();
    ASSERT_TRUE(budget.ok());
    EXPECT_EQ(budget->used().node_bytes() + budget->used().container_bytes(),
              0u);
  }

  fakes::FileTree tree_;
  std::unique_ptr<SidecarProcess> sidecar_;
  std::unique_ptr<client::Client> client_;
  std::optional<client::SharedRegion> region_;
  QueueAreas areas_;
  uint64_t mappings_ = 0;
};

TEST_F(ObjectsOnRxe, ACompletionQueueOfFiftyQueuePairsGrowsWhileInUse) {
  constexpr size_t kPairs = 25;
  std::vector<client::QueuePair> queue_pairs;
  for (size_t i = 0; i < kPairs; ++i) {
    queue_pairs.push_back(Create(Spec()));
    queue_pairs.push_back(Create(Spec()));
    Connect(queue_pairs[2 * i], queue_pairs[2 * i + 1]);
    // In flight, and completed but not polled, while it is grown for the next.
    for (size_t j = 0; j <= i; ++j) {
      FillCell(j, i * kPairs + j);
      const v1::SendWorkRequest writes[] = {Write(i, j, 100 + j)};
      const auto posted = queue_pairs[2 * j].PostSend(writes);
      ASSERT_TRUE(posted.ok()) << posted.status();
      ASSERT_EQ(posted->posted(), 1u) << posted->failure().message();
    }
    if (i % 5 != 4) continue;
    for (size_t j = 0; j <= i; ++j) {
      // Since the last time, or since it was there.
      const size_t first = std::max(j, i - 4);
      const auto completions = Await(queue_pairs[2 * j], i - first + 1);
      for (size_t k = 0; k < completions.size(); ++k)
        EXPECT_EQ(completions[k].wr_id(), first + k);
      EXPECT_TRUE(SameCells(j, 100 + j)) << j;
    }
    ExpectAccountEqualsKernel();
  }
  const auto status = client_->SidecarStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  ASSERT_EQ(status->completion_queues_size(), 1);
  const v1::CompletionQueue& queue = status->completion_queues(0);
  EXPECT_EQ(queue.queue_pairs(), 2 * kPairs);
  EXPECT_EQ(queue.slots(), 2 * kPairs * (127 + 31));
  EXPECT_GE(queue.cqe(), queue.slots() + queue.slots() / 5);
  EXPECT_GE(queue.growths(), 4u);
  queue_pairs.clear();
  ExpectBaseline();
}

// All that the rings take on every queue pair at once, then every completion.
TEST_F(ObjectsOnRxe, NothingOverrunsHoweverMuchIsPosted) {
  constexpr size_t kCount = 20;
  std::vector<client::QueuePair> queue_pairs;
  for (size_t i = 0; i < kCount; ++i) queue_pairs.push_back(Create(Spec()));
  for (size_t i = 0; i < kCount; i += 2)
    Connect(queue_pairs[i], queue_pairs[i + 1]);
  std::vector<v1::SendWorkRequest> writes;
  for (size_t i = 0; i < 200; ++i) writes.push_back(Write(i, 0, 1));
  std::map<uint64_t, uint64_t> posted;
  for (int round = 0; round < 3; ++round) {
    for (client::QueuePair& queue_pair : queue_pairs) {
      const auto response = queue_pair.PostSend(writes);
      ASSERT_TRUE(response.ok()) << response.status();
      posted[queue_pair.id()] += response->posted();
    }
  }
  for (client::QueuePair& queue_pair : queue_pairs) {
    EXPECT_GE(posted[queue_pair.id()], 127u);
    EXPECT_LE(posted[queue_pair.id()], 127u + 31);
    Await(queue_pair, posted[queue_pair.id()]);
  }
  ExpectAccountEqualsKernel();
}

TEST_F(ObjectsOnRxe, ASharedReceiveQueueServesEightQueuePairs) {
  constexpr size_t kReceivers = 8, kRounds = 6;
  const auto srq = client_->CreateSharedReceiveQueue(100, 1);
  ASSERT_TRUE(srq.ok()) << srq.status();
  EXPECT_EQ(srq->slots(), 127u);
  ExpectAccountEqualsKernel();
  std::vector<client::QueuePair> senders, receivers;
  for (size_t i = 0; i < kReceivers; ++i) {
    senders.push_back(Create(Spec()));
    client::QueuePairSpec spec = Spec();
    spec.cap.clear_max_recv_wr();
    spec.cap.clear_max_recv_sge();
    spec.shared_receive_queue_id = srq->id();
    receivers.push_back(Create(spec));
    EXPECT_EQ(receivers.back().properties().recv_slots(), 0u);
    Connect(senders[i], receivers[i]);
  }
  ExpectAccountEqualsKernel();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      client_->DestroySharedReceiveQueue(srq->id()).status()));

  for (size_t round = 0; round < kRounds; ++round) {
    // Receive r goes to cell 200 + r; the sender's message lies in cell i.
    std::vector<v1::ReceiveWorkRequest> receives;
    for (size_t i = 0; i < kReceivers; ++i)
      receives.push_back(Receive(i, 200 + i));
    const auto posted = client_->PostSharedReceive(srq->id(), receives);
    ASSERT_TRUE(posted.ok()) << posted.status();
    ASSERT_EQ(posted->posted(), kReceivers) << posted->failure().message();
    for (size_t i = 0; i < kReceivers; ++i) {
      FillCell(i, round * kReceivers + i);
      const v1::SendWorkRequest sends[] = {Send(i, i)};
      ASSERT_EQ(senders[i].PostSend(sends)->posted(), 1u);
    }
    for (size_t i = 0; i < kReceivers; ++i) {
      Await(senders[i], 1);
      const auto received = Await(receivers[i], 1);
      ASSERT_EQ(received.size(), 1u);
      EXPECT_TRUE(received[0].receive());
      EXPECT_EQ(received[0].byte_len(), kCell);
      EXPECT_TRUE(SameCells(i, 200 + received[0].wr_id()));
    }
  }
  const auto status = client_->SidecarStatus();
  ASSERT_TRUE(status.ok());
  ASSERT_EQ(status->shared_receive_queues_size(), 1);
  EXPECT_EQ(status->shared_receive_queues(0).outstanding_receives(), 0u);
  EXPECT_EQ(status->clients(0).traffic().post_failures(), 0u);
  EXPECT_EQ(status->clients(0).traffic().completion_errors(), 0u);
  senders.clear();
  receivers.clear();
  EXPECT_TRUE(client_->DestroySharedReceiveQueue(srq->id()).ok());
  ExpectBaseline();
}

}  // namespace
}  // namespace purser::rxe
