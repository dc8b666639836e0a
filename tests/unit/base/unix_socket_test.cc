// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"
#include "tests/unit/base/as_nobody.h"

namespace purser::base {
namespace {

using testing::HasSubstr;

class UnixSocketTest : public testing::Test {
 protected:
  sockaddr_un Address(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path));
    return address;
  }
  // A socket bound at `path`; with `backlog` < 0 not listening.
  FileDescriptor Bind(const std::string& path, int backlog,
                      int type = SOCK_STREAM) {
    FileDescriptor fd(socket(AF_UNIX, type, 0));
    const sockaddr_un address = Address(path);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
              0);
    if (backlog >= 0) {
      EXPECT_EQ(listen(fd.get(), backlog), 0);
    }
    return fd;
  }
  void BindAndDie(const std::string& path) { Bind(path, 1); }

  fakes::FileTree tree_;
  std::string path_ = tree_.path("purser.sock");
};

TEST_F(UnixSocketTest, NothingThere) {
  EXPECT_TRUE(PrepareUnixSocket(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, StaleSocketIsRemoved) {
  BindAndDie(path_);
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(PrepareUnixSocket(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  Bind(path_, 1);
}

TEST_F(UnixSocketTest, LiveSocketStays) {
  const FileDescriptor server = Bind(path_, 1);
  const absl::Status status = PrepareUnixSocket(path_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(), "socket " + path_ +
                                  ": another server answers there: stop it or "
                                  "choose another path");
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, LiveSocketWithAFullBacklogStays) {
  const FileDescriptor server = Bind(path_, 0);
  std::vector<FileDescriptor> clients;
  const sockaddr_un address = Address(path_);
  do {
    clients.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  } while (connect(clients.back().get(),
                   reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)) == 0);
  ASSERT_EQ(errno, EAGAIN);
  EXPECT_EQ(PrepareUnixSocket(path_).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, LiveSocketOfAnotherTypeStays) {
  const FileDescriptor server = Bind(path_, -1, SOCK_DGRAM);
  EXPECT_EQ(PrepareUnixSocket(path_).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, WhatIsNoSocketStays) {
  tree_.Write("file", "precious");
  tree_.Directory("directory");
  tree_.Link("link", "nowhere");
  for (const char* name : {"file", "directory", "link"}) {
    const absl::Status status = PrepareUnixSocket(tree_.path(name));
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << name;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("not a socket is in the way"));
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(
        std::filesystem::path(tree_.path(name)))))
        << name;
  }
}

TEST_F(UnixSocketTest, LongestPathIs107Bytes) {
  const std::string longest = path_ + std::string(107 - path_.size(), 'x');
  ASSERT_EQ(longest.size(), 107u);
  EXPECT_TRUE(PrepareUnixSocket(longest).ok());
  BindAndDie(longest);
  EXPECT_TRUE(PrepareUnixSocket(longest).ok());
  EXPECT_FALSE(std::filesystem::exists(longest));

  const absl::Status status = PrepareUnixSocket(longest + "y");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "socket path " + longest +
                "y has 108 bytes and unix sockets allow 107: shorten it");
}

TEST_F(UnixSocketTest, RelativePathsAreRefused) {
  for (const std::string& path :
       {std::string(), std::string("purser.sock"), std::string("./a/b.sock"),
        std::string("\0purser", 7), std::string("/run/a\0b", 8)}) {
    const absl::Status status = PrepareUnixSocket(path);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("must be absolute"));
  }
}

TEST_F(UnixSocketTest, MissingDirectory) {
  const absl::Status status =
      PrepareUnixSocket(tree_.path("nowhere/purser.sock"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("directory " + tree_.path("nowhere") +
                        ": No such file or directory; create it or mount the "
                        "volume that holds it"));
}

TEST_F(UnixSocketTest, DirectoryThatIsAFile) {
  tree_.Write("file", "");
  const absl::Status status = PrepareUnixSocket(tree_.path("file/purser.sock"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(tree_.path("file") + " is not a directory"));
}

TEST_F(UnixSocketTest, ForbiddenToLookOrToRemove) {
  BindAndDie(path_);
  absl::Status status;
  chmod(tree_.root().c_str(), 0);
  AsNobody([&] { status = PrepareUnixSocket(path_); });
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;

  chmod(tree_.root().c_str(), 0755);
  chmod(path_.c_str(), 0600);
  AsNobody([&] { status = PrepareUnixSocket(path_); });
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot tell whether a server still uses it"));

  chmod(path_.c_str(), 0777);
  AsNobody([&] { status = PrepareUnixSocket(path_); });
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot remove the stale socket"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace purser::base
