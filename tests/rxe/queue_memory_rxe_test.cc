// SPDX-License-Identifier: Apache-2.0
//
// The sidecar's account against the kernel's own figures, to the byte, on a
// real soft-RoCE device.
#include <gtest/gtest.h>

#include <filesystem>

#include "client/client.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/paths.h"
#include "tests/rxe/account.h"
#include "tests/rxe/kernel_oracle.h"
#include "tests/rxe/sidecar_process.h"

namespace purser::rxe {
namespace {

using std::chrono::seconds;

struct Shape {
  uint32_t send_wr, send_sge, recv_wr, recv_sge;
};
constexpr Shape kShapes[] = {{256, 4, 256, 1},
                             {4096, 8, 4096, 1},
                             {128, 2, 128, 1},
                             {1024, 16, 1024, 1}};

client::QueuePairSpec SpecOf(const Shape& shape) {
  client::QueuePairSpec spec;
  spec.cap.set_max_send_wr(shape.send_wr);
  spec.cap.set_max_send_sge(shape.send_sge);
  spec.cap.set_max_recv_wr(shape.recv_wr);
  spec.cap.set_max_recv_sge(shape.recv_sge);
  return spec;
}

class QueueMemoryOnRxe : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "there is no rxe0; run it by tests/rxe/run";
    Start();
  }

  void Start() {
    sidecar_ = std::make_unique<SidecarProcess>(tree_.root(), "1800Mi");
    auto client = sidecar_->Connect("rxe-test");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    areas_ = ReadQueueAreas();
    mappings_ = ReadUverbsMappings(sidecar_->process().pid());
  }

  // What the account says is held, beside what the kernel says.
  void ExpectAccountEqualsKernel() {
    const Account account = ReadAccount(*client_);
    EXPECT_EQ(ReadUverbsMappings(sidecar_->process().pid()) - mappings_,
              account.rings);
    EXPECT_EQ(ReadQueueAreas().bytes - areas_.bytes,
              account.rings + account.overhead);
    auto budget = client_->Budget();
    ASSERT_TRUE(budget.ok()) << budget.status();
    EXPECT_EQ(budget->used().node_bytes(), account.rings + account.overhead);
    EXPECT_EQ(budget->used().node_bytes() + budget->used().container_bytes(),
              account.charged);
  }

  void ExpectBaseline() {
    EXPECT_TRUE(
        Eventually(seconds(2), [&] { return ReadQueueAreas() == areas_; }))
        << ReadQueueAreas().bytes << " bytes of queues, " << areas_.bytes
        << " at first";
  }

  fakes::FileTree tree_;
  std::unique_ptr<SidecarProcess> sidecar_;
  std::unique_ptr<client::Client> client_;
  QueueAreas areas_;
  uint64_t mappings_ = 0;
};

TEST_F(QueueMemoryOnRxe, FiftyOfEachShapeCostWhatTheKernelSays) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.send_wr);
    std::vector<client::QueuePair> queue_pairs;
    for (int i = 0; i < 50; ++i) {
      auto queue_pair = client_->CreateQueuePair(SpecOf(shape));
      ASSERT_TRUE(queue_pair.ok()) << queue_pair.status();
      queue_pairs.push_back(*std::move(queue_pair));
    }
    ExpectAccountEqualsKernel();
    queue_pairs.clear();
    ExpectAccountEqualsKernel();
    ExpectBaseline();
  }
}

TEST_F(QueueMemoryOnRxe, AMixtureCostsWhatTheKernelSays) {
  std::vector<client::QueuePair> queue_pairs;
  for (int i = 0; i < 48; ++i) {
    auto queue_pair = client_->CreateQueuePair(SpecOf(kShapes[i % 4]));
    ASSERT_TRUE(queue_pair.ok()) << queue_pair.status();
    queue_pairs.push_back(*std::move(queue_pair));
    if (i % 5 == 4) queue_pairs.erase(queue_pairs.begin());
  }
  ExpectAccountEqualsKernel();
  queue_pairs.clear();
  ExpectBaseline();
  auto budget = client_->Budget();
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->used().node_bytes(), 0);
  EXPECT_EQ(budget->used().container_bytes(), 0);
}

TEST_F(QueueMemoryOnRxe, ARefusedQueuePairTakesNothing) {
  std::vector<client::QueuePair> queue_pairs;
  absl::Status refused;
  for (int i = 0; i < 1000 && refused.ok(); ++i) {
    auto queue_pair = client_->CreateQueuePair(SpecOf(kShapes[1]));
    refused = queue_pair.status();
    if (queue_pair.ok()) queue_pairs.push_back(*std::move(queue_pair));
  }
  ASSERT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  ExpectAccountEqualsKernel();
  const auto refusal = client::RefusalOf(refused);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_GT(refusal->needed_bytes(),
            refusal->budget_bytes() - refusal->used_bytes());
  // The advice is exact: the depth it names fits, one more does not.
  client::QueuePairSpec spec = SpecOf(kShapes[1]);
  spec.cap.set_max_send_wr(refusal->largest_max_send_wr() + 1);
  EXPECT_FALSE(client_->CreateQueuePair(spec).ok());
  if (refusal->largest_max_send_wr() > 0) {
    spec.cap.set_max_send_wr(refusal->largest_max_send_wr());
    auto fits = client_->CreateQueuePair(spec);
    EXPECT_TRUE(fits.ok()) << fits.status();
  }
}

TEST_F(QueueMemoryOnRxe, KillingTheSidecarLeavesNothingAndARestartServesAgain) {
  auto queue_pair = client_->CreateQueuePair(SpecOf(kShapes[1]));
  ASSERT_TRUE(queue_pair.ok()) << queue_pair.status();
  EXPECT_NE(ReadQueueAreas(), areas_);
  sidecar_->process().Kill(SIGKILL);
  ExpectBaseline();
  const auto created = client_->CreateQueuePair(SpecOf(kShapes[0]));
  EXPECT_TRUE(absl::IsUnavailable(created.status())) << created.status();
  const auto connected = client::Client::Connect(sidecar_->socket(), "between");
  EXPECT_TRUE(absl::IsUnavailable(connected.status())) << connected.status();

  Start();
  auto again = client_->CreateQueuePair(SpecOf(kShapes[0]));
  EXPECT_TRUE(again.ok()) << again.status();
  ExpectAccountEqualsKernel();
}

TEST_F(QueueMemoryOnRxe, AKilledClientsQueuePairsAreGoneInTwoSeconds) {
  ChildProcess client({fakes::BuiltPath("cli/purser"), "--socket",
                       sidecar_->socket(), "qp", "create", "--count", "10",
                       "--send-wr", "1024"});
  ASSERT_TRUE(Eventually(seconds(20), [&] {
    auto listed = client_->List();
    return listed.ok() && listed->size() == 10;
  }));
  ExpectAccountEqualsKernel();
  client.Kill(SIGKILL);
  EXPECT_TRUE(Eventually(seconds(2), [&] {
    auto budget = client_->Budget();
    return budget.ok() && budget->queue_pairs() == 0 &&
           budget->used().node_bytes() == 0;
  }));
  ExpectBaseline();
}

}  // namespace
}  // namespace purser::rxe
