// SPDX-License-Identifier: Apache-2.0
//
// rxe0 is removed from under a sidecar that holds hundreds of queue pairs on
// it, and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "client/client.h"
#include "client/shared_region.h"
#include "tests/fakes/file_tree.h"
#include "tests/rxe/kernel_oracle.h"
#include "tests/rxe/sidecar_process.h"

namespace purser::rxe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kQueuePairs = 200;
constexpr char kMetricsPort[] = "19837";

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (size_t length = fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), length);
  pclose(pipe);
  return output;
}

std::string Get(const std::string& path) {
  return OutputOf("curl -si --max-time 10 http://127.0.0.1:" +
                  std::string(kMetricsPort) + path);
}

class DeviceRemovalOnRxe : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "there is no rxe0; run it by tests/rxe/run";
    std::ifstream("/sys/class/infiniband/rxe0/parent") >> netdev_;
    unused_ = Remove();
    Add();
    areas_ = ReadQueueAreas();
    sidecar_ =
        std::make_unique<SidecarProcess>(tree_.root(), "256Mi", kMetricsPort);
    auto client = sidecar_->Connect("removal");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void TearDown() override {
    if (!netdev_.empty() &&
        !std::filesystem::exists("/sys/class/infiniband/rxe0"))
      Add();
  }

  void Add() {
    EXPECT_EQ(
        std::system(("rdma link add rxe0 type rxe netdev " + netdev_).c_str()),
        0);
  }
  absl::StatusOr<client::QueuePair> Create() {
    client::QueuePairSpec spec;
    spec.cap.set_max_send_wr(128);
    spec.cap.set_max_send_sge(2);
    spec.cap.set_max_recv_wr(128);
    spec.cap.set_max_recv_sge(1);
    return client_->CreateQueuePair(spec);
  }
  void FillWith(int count) {
    for (int i = 0; i < count; ++i) {
      auto queue_pair = Create();
      ASSERT_TRUE(queue_pair.ok()) << queue_pair.status();
      queue_pairs_.push_back(*std::move(queue_pair));
    }
  }
  // To itself, and a write of nothing that completes.
  void ExpectThatItWorks(client::QueuePair& queue_pair) {
    const v1::Endpoint itself = queue_pair.local();
    const absl::Status connected = queue_pair.Connect(itself, {});
    ASSERT_TRUE(connected.ok()) << connected;
    v1::SendWorkRequest write;
    write.set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
    const auto posted = queue_pair.PostSend({&write, 1});
    ASSERT_TRUE(posted.ok()) << posted.status();
    const auto completions = queue_pair.Poll(1, seconds(5));
    ASSERT_TRUE(completions.ok()) << completions.status();
    ASSERT_EQ(completions->size(), 1u);
    EXPECT_EQ((*completions)[0].status_name(), "SUCCESS");
  }

  // Removes the device; how long that hung in the kernel.
  milliseconds Remove() {
    const auto begin = Clock::now();
    EXPECT_EQ(std::system("timeout 60 rdma link delete rxe0"), 0);
    return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  }
  void ExpectUnavailable(const absl::Status& status) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("device rxe0 was removed"));
  }

  std::string netdev_;
  milliseconds unused_{0};  // what a removal takes here when nobody minds
  QueueAreas areas_;
  fakes::FileTree tree_;
  std::unique_ptr<SidecarProcess> sidecar_;
  std::unique_ptr<client::Client> client_;
  std::vector<client::QueuePair> queue_pairs_;
};

TEST_F(DeviceRemovalOnRxe, TheSidecarLetsGoTellsItsClientsAndTakesItBack) {
  for (int round = 1; round <= 2; ++round) {
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(FillWith(round == 1 ? kQueuePairs : 20));
    ASSERT_NO_FATAL_FAILURE(ExpectThatItWorks(queue_pairs_[0]));
    auto region =
        client::SharedRegion::Create(*client_, sidecar_->volume(), 1 << 20);
    ASSERT_TRUE(region.ok()) << region.status();
    auto waits = std::async(std::launch::async, [&] {
      return queue_pairs_[1].Poll(1, seconds(10)).status();
    });

    const milliseconds hung = Remove();
    std::printf("removal under %zu queue pairs: %ld ms; under none: %ld ms\n",
                queue_pairs_.size(), static_cast<long>(hung.count()),
                static_cast<long>(unused_.count()));
    EXPECT_LT(hung, seconds(2) + 10 * unused_);
    ExpectUnavailable(waits.get());
    ExpectUnavailable(queue_pairs_[2].Poll(1).status());
    ExpectUnavailable(Create().status());
    EXPECT_EQ(client_->lost_devices().size(), round);
    EXPECT_TRUE(client_->status().ok()) << "the sidecar lives";
    EXPECT_EQ(client_->Budget()->used().node_bytes(), 0u);
    EXPECT_THAT(Get("/readyz"), AllOf(HasSubstr(" 503 "),
                                      HasSubstr("device rxe0 was removed")));
    EXPECT_THAT(Get("/healthz"), HasSubstr(" 200 "));
    EXPECT_THAT(Get("/metrics"),
                HasSubstr("purser_device_open{device=\"rxe0\"} 0"));
    queue_pairs_.clear();

    Add();
    EXPECT_TRUE(Eventually(seconds(5), [] {
      return Get("/readyz").find(" 200 ") != std::string::npos;
    })) << Get("/readyz");
    EXPECT_EQ(ReadQueueAreas(), areas_);
  }
  ASSERT_NO_FATAL_FAILURE(FillWith(1));
  ExpectThatItWorks(queue_pairs_[0]);
  queue_pairs_.clear();
  const int status = sidecar_->process().Kill(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace purser::rxe
