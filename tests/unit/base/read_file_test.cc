// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>

#include "base/strict_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"
#include "tests/unit/base/as_nobody.h"

namespace purser::base {
namespace {

using testing::HasSubstr;

class ReadFileTest : public testing::Test {
 protected:
  fakes::FileTree tree_;
};

TEST_F(ReadFileTest, ReadsTheWholeFile) {
  const std::string content = std::string(10000, 'x') + std::string("\0\n", 2);
  tree_.Write("file", content);
  EXPECT_EQ(*ReadFile(tree_.path("file")), content);
  tree_.Write("empty", "");
  EXPECT_EQ(*ReadFile(tree_.path("empty")), "");
}

TEST_F(ReadFileTest, FollowsLinksAsConfigMapsHaveThem) {
  tree_.Write("..data/config.yaml", "a: 1\n");
  tree_.Link("config.yaml", "..data/config.yaml");
  EXPECT_EQ(*ReadFile(tree_.path("config.yaml")), "a: 1\n");
}

TEST_F(ReadFileTest, RefusesMoreThanTheLimit) {
  tree_.Write("file", std::string(11, 'x'));
  EXPECT_TRUE(ReadFile(tree_.path("file"), 11).ok());
  const absl::Status status = ReadFile(tree_.path("file"), 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), tree_.path("file") +
                                  " is longer than 10 bytes, the most that is "
                                  "read: is it the right file?");
  // Files without end, too.
  EXPECT_THAT(
      std::string(ReadFile("/dev/zero", 10, FileKind::kAny).status().message()),
      HasSubstr("is longer than 10 bytes"));
}

TEST_F(ReadFileTest, MissingFile) {
  const absl::Status status = ReadFile(tree_.path("nothing")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "cannot read " + tree_.path("nothing") +
                ": No such file or directory; check the path, and that the "
                "volume is mounted");
}

TEST_F(ReadFileTest, Directory) {
  const absl::Status status = ReadFile(tree_.root().string()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Is a directory; name a file in it"));
}

// Which nobody writes to: it must not be waited for.
TEST_F(ReadFileTest, APipeIsNoRegularFile) {
  const std::string path = tree_.path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0644), 0);
  const absl::Status status = ReadFile(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "cannot read " + path +
                ": it is a pipe or a device; name a regular file");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile("/dev/zero").status()));
}

TEST_F(ReadFileTest, APipeIsReadToItsEndWhereThatIsAskedFor) {
  const std::string path = tree_.path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0644), 0);
  std::jthread writer([&] { std::ofstream(path) << "a: 1\n"; });
  EXPECT_EQ(*ReadFile(path, 10, FileKind::kAny), "a: 1\n");
}

TEST_F(ReadFileTest, ForbiddenFile) {
  tree_.Write("secret", "");
  chmod(tree_.root().c_str(), 0755);
  chmod(tree_.path("secret").c_str(), 0);
  absl::Status status;
  AsNobody([&] { status = ReadFile(tree_.path("secret")).status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("let this process's user read it"));
}

TEST_F(ReadFileTest, OtherErrors) {
  const absl::Status status =
      ReadFile(tree_.path(std::string(300, 'x'))).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("File name too long"));
}

}  // namespace
}  // namespace purser::base
