// SPDX-License-Identifier: Apache-2.0
//
// Clients and sidecars that are killed under load, on a real soft-RoCE device:
// the kernel has its memory and its objects back. PURSER_KILLS is how many
// clients; a fifth as many sidecars.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <random>

#include "tests/fakes/file_tree.h"
#include "tests/rxe/kernel_oracle.h"
#include "tests/rxe/sidecar_process.h"

namespace purser::rxe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kClients = 5;  // at once

int Kills() {
  const char* kills = std::getenv("PURSER_KILLS");
  return kills != nullptr ? std::max(5, std::atoi(kills)) : 20;
}

// What the kernel has for soft-RoCE.
struct KernelMemory {
  QueueAreas areas;
  uint64_t mapped = 0;  // by the sidecar
  KernelObjects objects;
  friend bool operator==(const KernelMemory&, const KernelMemory&) = default;
};

KernelMemory Read(const SidecarProcess& sidecar) {
  return {ReadQueueAreas(), ReadUverbsMappings(sidecar.pid()),
          ReadKernelObjects()};
}

class KillOnRxe : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "there is no rxe0; run it by tests/rxe/run";
    Start();
  }
  void Start() {
    sidecar_.reset();
    sidecar_ = std::make_unique<SidecarProcess>(tree_.root(), "256Mi");
    const auto client = sidecar_->Connect("probe");
    ASSERT_TRUE(client.ok()) << client.status();
  }
  // Has three queue pairs, anew of each sidecar.
  std::unique_ptr<ChildProcess> Client() {
    std::vector<std::string> arguments = {
        fakes::BuiltPath("tests/integration/sidecar_client"),
        sidecar_->socket(), "3", "again"};
    return std::make_unique<ChildProcess>(arguments);
  }
  void Pause(milliseconds most) {
    std::this_thread::sleep_for(milliseconds(random_() % most.count()));
  }
  // Fails where that takes longer than two seconds; prints how long it took.
  void ExpectWithinTwoSeconds(const KernelMemory& memory) {
    const auto begin = Clock::now();
    EXPECT_TRUE(
        Eventually(seconds(30), [&] { return Read(*sidecar_) == memory; }))
        << "queue areas " << ReadQueueAreas().bytes << " of "
        << memory.areas.bytes;
    const auto took =
        std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    std::printf("all is back after %ld ms\n", static_cast<long>(took.count()));
    EXPECT_LT(took, seconds(2));
  }

  fakes::FileTree tree_;
  std::unique_ptr<SidecarProcess> sidecar_;
  std::mt19937 random_{1};
};

TEST_F(KillOnRxe, ClientsThatAreKilledLeaveNothingInTheKernel) {
  const KernelMemory before = Read(*sidecar_);
  std::list<std::unique_ptr<ChildProcess>> clients;
  uint64_t most = 0;
  for (int i = 0; i < Kills(); ++i) {
    while (clients.size() < kClients) clients.push_back(Client());
    Pause(milliseconds(400));
    most = std::max(most, ReadQueueAreas().bytes);
    clients.front()->Kill(SIGKILL);
    clients.pop_front();
  }
  EXPECT_GT(most, before.areas.bytes) << "there was a load";
  clients.clear();
  ExpectWithinTwoSeconds(before);
}

TEST_F(KillOnRxe, SidecarsThatAreKilledLeaveNothingInTheKernel) {
  const KernelMemory before = Read(*sidecar_);
  std::list<std::unique_ptr<ChildProcess>> clients;
  while (clients.size() < kClients) clients.push_back(Client());
  uint64_t most = 0;
  for (int i = 0; i < Kills() / 5; ++i) {
    ASSERT_TRUE(Eventually(seconds(60), [&] {
      return ReadQueueAreas().bytes > before.areas.bytes;
    })) << "clients attach to the sidecar after a sidecar";
    Pause(milliseconds(200));
    most = std::max(most, ReadQueueAreas().bytes);
    Start();
  }
  EXPECT_GT(most, before.areas.bytes);
  clients.clear();
  ExpectWithinTwoSeconds(before);
}

}  // namespace
}  // namespace purser::rxe
