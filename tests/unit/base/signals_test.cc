// SPDX-License-Identifier: Apache-2.0
#include "base/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <functional>
#include <latch>
#include <thread>

#include "base/file_descriptor.h"
#include "gtest/gtest.h"

namespace purser::base {
namespace {

using std::chrono::milliseconds;

// Signal masks belong to threads: the test's own stays as it is.
void InThread(const std::function<void()>& body) { std::jthread{body}.join(); }

TEST(SignalsTest, WaitsForEachBlockedSignal) {
  InThread([] {
    BlockSignals();
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      pthread_kill(pthread_self(), number);
      EXPECT_EQ(WaitForSignal(), number);
    }
  });
}

TEST(SignalsTest, LaterThreadsInheritTheBlock) {
  InThread([] {
    BlockSignals();
    InThread([] {
      sigset_t mask;
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      EXPECT_TRUE(sigismember(&mask, SIGTERM));
      EXPECT_FALSE(sigismember(&mask, SIGUSR1));
    });
  });
}

TEST(SignalsTest, TimesOut) {
  InThread([] {
    BlockSignals();
    EXPECT_EQ(WaitForSignal(milliseconds(0)), std::nullopt);
    EXPECT_EQ(WaitForSignal(milliseconds(-5)), std::nullopt);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(WaitForSignal(milliseconds(20)), std::nullopt);
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(20));
    pthread_kill(pthread_self(), SIGHUP);
    EXPECT_EQ(WaitForSignal(milliseconds(10000)), SIGHUP);
  });
}

TEST(SignalsTest, OtherSignalsDoNotEndTheWait) {
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, &before);
  std::latch blocked(1);
  std::optional<int> without_limit, with_limit;
  std::jthread waiting([&] {
    BlockSignals();
    blocked.count_down();
    without_limit = WaitForSignal();
    with_limit = WaitForSignal(milliseconds(10000));
  });
  blocked.wait();
  for (const int end : {SIGINT, SIGTERM}) {
    for (int i = 0; i < 100; ++i)
      pthread_kill(waiting.native_handle(), SIGUSR1);
    pthread_kill(waiting.native_handle(), end);
  }
  waiting.join();
  EXPECT_EQ(without_limit, SIGINT);
  EXPECT_EQ(with_limit, SIGTERM);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(SignalsTest, AreTakenFromADescriptorInTurn) {
  InThread([] {
    BlockSignals();
    const absl::StatusOr<FileDescriptor> signals = OpenSignals();
    ASSERT_TRUE(signals.ok()) << signals.status();
    EXPECT_EQ(TakeSignal(*signals), std::nullopt);
    pollfd waited{signals->get(), POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 0), 0);
    for (const int number : {SIGHUP, SIGTERM})
      pthread_kill(pthread_self(), number);
    EXPECT_EQ(poll(&waited, 1, 0), 1);
    EXPECT_EQ(TakeSignal(*signals), SIGHUP);
    EXPECT_EQ(TakeSignal(*signals), SIGTERM);
    EXPECT_EQ(TakeSignal(*signals), std::nullopt);
  });
}

TEST(SignalsTest, WritingToAClosedPeerIsAnErrorNotDeath) {
  InThread([] { BlockSignals(); });
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const FileDescriptor kept(fds[0]);
  { const FileDescriptor closed(fds[1]); }
  EXPECT_EQ(send(kept.get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace purser::base
