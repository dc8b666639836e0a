// SPDX-License-Identifier: Apache-2.0
//
// Read-only and full volumes take a mount to make: tests/rxe/bad_input_test.
#include "sidecar/shared_volume.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SharedVolumeTest : public ::testing::Test {
 protected:
  SharedVolumeTest() { tree_.Directory("run"); }
  absl::Status Prepare(const std::string& directory) {
    return PrepareSharedVolume(tree_.path(directory),
                               tree_.path(directory + "/sidecar.sock"));
  }
  std::string Fault(const std::string& directory) {
    const absl::Status status = Prepare(directory);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  }
  fakes::FileTree tree_;
};

TEST_F(SharedVolumeTest, LeavesNothingInAGoodOne) {
  EXPECT_TRUE(Prepare("run").ok());
  EXPECT_TRUE(std::filesystem::is_empty(tree_.path("run")));
}

TEST_F(SharedVolumeTest, OneThatIsNotThereIsDescribedAsThePodsSpecHasIt) {
  EXPECT_THAT(Fault("nowhere"),
              AllOf(HasSubstr("no shared volume at " + tree_.path("nowhere")),
                    HasSubstr("emptyDir: {medium: Memory}"),
                    HasSubstr("mountPath: " + tree_.path("nowhere") + "}]")));
  tree_.Write("file", "");
  EXPECT_THAT(Fault("file"), AllOf(HasSubstr("not a directory"),
                                   HasSubstr("volumeMounts: [")));
}

TEST_F(SharedVolumeTest, OneThatMayNotBeWrittenNamesFsGroup) {
  chmod(tree_.root().c_str(), 0755);
  chmod(tree_.path("run").c_str(), 0555);
  const uid_t user = geteuid();
  // Root may write everywhere.
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);
  const std::string fault = Fault("run");
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_THAT(fault, HasSubstr("may not write there: set "
                               "securityContext.fsGroup"));
}

TEST_F(SharedVolumeTest, ASocketPathThatIsTooLongIsTheConfigurationsFault) {
  EXPECT_TRUE(absl::IsInvalidArgument(PrepareSharedVolume(
      tree_.path("run"), tree_.path("run/" + std::string(107, 'x')))));
}

}  // namespace
}  // namespace purser::sidecar
