// SPDX-License-Identifier: Apache-2.0
//
// Clients and sidecars that are killed under load, on a real soft-RoCE device:
// the kernel has its memory and its objects back. PURSER_KILLS is how many
// clients; a fifth as many sidecars.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

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
  return kills != nullptr ? std::max(5, std::atoi(kills)) : 10;
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
  static bool LoadSince(const KernelMemory& before) {
    return Eventually(seconds(60), [&] {
      return ReadQueueAreas().bytes > before.areas.bytes;
    });
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
  std::vector<std::unique_ptr<ChildProcess>> clients(kClients);
  for (auto& client : clients) client = Client();
  int under_load = 0;
  for (int i = 0; i < Kills(); ++i) {
    ASSERT_TRUE(LoadSince(before));
    Pause(milliseconds(200));
    if (ReadQueueAreas().bytes > before.areas.bytes) ++under_load;
    auto& victim = clients[random_() % kClients];
    victim->Kill(SIGKILL);
    victim = Client();
  }
  std::printf("%d killed, %d of them while queues were held\n", Kills(),
              under_load);
  clients.clear();
  ExpectWithinTwoSeconds(before);
}

TEST_F(KillOnRxe, SidecarsThatAreKilledLeaveNothingInTheKernel) {
  const KernelMemory before = Read(*sidecar_);
  std::vector<std::unique_ptr<ChildProcess>> clients(kClients);
  for (auto& client : clients) client = Client();
  for (int i = 0; i < Kills() / 5; ++i) {
    ASSERT_TRUE(LoadSince(before)) << "clients attach to the next sidecar";
    Pause(milliseconds(200));
    Start();
  }
  clients.clear();
  ExpectWithinTwoSeconds(before);
}

}  // namespace
}  // namespace purser::rxe
