// SPDX-License-Identifier: Apache-2.0
#include "plugin/directory_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class DirectoryWatchTest : public ::testing::Test {
 protected:
  DirectoryWatchTest() : wakeup_(*Wakeup::Create()) {}
  // Whether the wait ended before its time.
  bool Woken(DirectoryWatch& watch,
             std::chrono::milliseconds at_most = std::chrono::seconds(5)) {
    const auto until = steady_clock::now() + at_most;
    watch.Wait(*wakeup_, until);
    return steady_clock::now() < until;
  }

  fakes::FileTree tree_;
  std::shared_ptr<Wakeup> wakeup_;
};

TEST_F(DirectoryWatchTest, WakesOnNewAndRemovedEntries) {
  tree_.Directory("d");
  DirectoryWatch watch(tree_.path("d"), 10s);
  watch.Arm();
  tree_.Write("d/kubelet.sock", "");
  EXPECT_TRUE(Woken(watch));
  watch.Arm();
  tree_.Remove("d/kubelet.sock");
  EXPECT_TRUE(Woken(watch));
  EXPECT_FALSE(watch.polling());
}

TEST_F(DirectoryWatchTest, WaitsForItsTimeWhenNothingHappens) {
  tree_.Directory("d");
  DirectoryWatch watch(tree_.path("d"), 10s);
  watch.Arm();
  EXPECT_FALSE(Woken(watch, 20ms));
}

TEST_F(DirectoryWatchTest, FollowsADirectoryThatAppearsPieceByPiece) {
  DirectoryWatch watch(tree_.path("lib/kubelet/device-plugins"), 10s);
  for (const char* step : {"lib", "lib/kubelet", "lib/kubelet/device-plugins",
                           "lib/kubelet/device-plugins/kubelet.sock"}) {
    watch.Arm();
    tree_.Directory(step);
    EXPECT_TRUE(Woken(watch)) << step;
  }
}

TEST_F(DirectoryWatchTest, FollowsADirectoryThatIsMadeAnew) {
  tree_.Directory("d");
  DirectoryWatch watch(tree_.path("d"), 10s);
  watch.Arm();
  tree_.Remove("d");
  EXPECT_TRUE(Woken(watch));
  watch.Arm();
  tree_.Directory("d");
  EXPECT_TRUE(Woken(watch));
  watch.Arm();
  tree_.Write("d/kubelet.sock", "");
  EXPECT_TRUE(Woken(watch));
}

TEST_F(DirectoryWatchTest, FollowsADirectoryThatIsSwappedByRename) {
  tree_.Directory("d");
  tree_.Directory("other");
  DirectoryWatch watch(tree_.path("d"), 10s);
  watch.Arm();
  std::filesystem::rename(tree_.path("d"), tree_.path("old"));
  std::filesystem::rename(tree_.path("other"), tree_.path("d"));
  EXPECT_TRUE(Woken(watch));
  watch.Arm();
  tree_.Write("d/kubelet.sock", "");
  EXPECT_TRUE(Woken(watch));
}

TEST_F(DirectoryWatchTest, WakesWhenNotifiedBeforeTheWait) {
  DirectoryWatch watch(tree_.path("d"), 10s);
  watch.Arm();
  wakeup_->Notify();
  EXPECT_TRUE(Woken(watch));
  EXPECT_FALSE(Woken(watch, 10ms));
}

// As when the node's inotify instances are used up: inotify_init1 fails with
// EMFILE.
TEST_F(DirectoryWatchTest, PollsWithoutInotifyAndGoesBackToIt) {
  tree_.Directory("d");
  DirectoryWatch watch(tree_.path("d"), 20ms);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next_fd = dup(0);
  close(next_fd);
  const rlimit none{static_cast<rlim_t>(next_fd), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  watch.Arm();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(watch.polling());
  EXPECT_TRUE(Woken(watch));
  watch.Arm();
  EXPECT_FALSE(watch.polling());
  tree_.Write("d/kubelet.sock", "");
  EXPECT_TRUE(Woken(watch));
}

}  // namespace
}  // namespace purser::plugin
