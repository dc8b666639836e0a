// SPDX-License-Identifier: Apache-2.0
//
// The sidecar as a pod has it, without root and capabilities, where
// RLIMIT_MEMLOCK binds what it registers for its clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "client/client.h"
#include "client/shared_region.h"
#include "tests/fakes/file_tree.h"
#include "tests/rxe/sidecar_process.h"

namespace purser::rxe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MemlockOnRxe : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "there is no rxe0; run it by tests/rxe/run";
    // As a volume with fsGroup: its files belong to the group of both.
    ASSERT_EQ(chown(tree_.root().c_str(), 0, 65532), 0);
    chmod(tree_.root().c_str(), 02775);
  }
  void Start(const std::string& memlock_bytes) {
    sidecar_ = std::make_unique<SidecarProcess>(
        tree_.root(), "64Mi", "0",
        std::vector<std::string>{
            "/usr/bin/prlimit", "--memlock=" + memlock_bytes,
            "/usr/bin/setpriv", "--reuid=65532", "--regid=65532",
            "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs"});
    auto client = sidecar_->Connect("memlock");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  absl::StatusOr<client::SharedRegion> Register(size_t bytes) {
    return client::SharedRegion::Create(*client_, sidecar_->volume(), bytes);
  }

  fakes::FileTree tree_;
  std::unique_ptr<SidecarProcess> sidecar_;
  std::unique_ptr<client::Client> client_;
};

TEST_F(MemlockOnRxe, ARegistrationBeyondTheLimitNamesItAndTheWaysOut) {
  ASSERT_NO_FATAL_FAILURE(Start("1048576"));
  {
    const auto within = Register(512 << 10);
    ASSERT_TRUE(within.ok()) << within.status();
    const absl::Status beyond = Register(768 << 10).status();
    EXPECT_TRUE(absl::IsResourceExhausted(beyond)) << beyond;
    std::printf("%s\n", std::string(beyond.message()).c_str());
    EXPECT_THAT(std::string(beyond.message()),
                AllOf(HasSubstr("524,288 bytes are registered already"),
                      HasSubstr("RLIMIT_MEMLOCK is 1 MiB"),
                      HasSubstr("LimitMEMLOCK=infinity"),
                      HasSubstr("sidecar.ipcLock")));
  }
  EXPECT_TRUE(Register(768 << 10).ok()) << "the first was returned";
}

TEST_F(MemlockOnRxe, WithoutALimitItTakesMore) {
  ASSERT_NO_FATAL_FAILURE(Start("unlimited"));
  EXPECT_TRUE(Register(64 << 20).ok());
}

}  // namespace
}  // namespace purser::rxe
