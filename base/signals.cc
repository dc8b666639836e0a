// SPDX-License-Identifier: Apache-2.0
#include "base/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace purser::base {
namespace {

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&signals, signal);
  return signals;
}

timespec ToTimespec(std::chrono::nanoseconds duration) {
  duration = std::max(duration, std::chrono::nanoseconds(0));
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(duration);
  return timespec{.tv_sec = seconds.count(),
                  .tv_nsec = (duration - seconds).count()};
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

std::optional<int> WaitForSignal(
    std::optional<std::chrono::milliseconds> timeout) {
  using Clock = std::chrono::steady_clock;
  const sigset_t signals = HandledSignals();
  const Clock::time_point start = Clock::now();
  while (true) {
    int number = 0;
    if (timeout.has_value()) {
      const timespec remaining = ToTimespec(*timeout - (Clock::now() - start));
      number = sigtimedwait(&signals, nullptr, &remaining);
    } else {
      number = sigwaitinfo(&signals, nullptr);
    }
    if (number > 0) return number;
    // EINTR: a signal that is not waited for was handled, or the process was
    // stopped and continued.
    if (errno != EINTR) return std::nullopt;
  }
}

absl::StatusOr<FileDescriptor> OpenSignals() {
  const sigset_t signals = HandledSignals();
  FileDescriptor fd(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "signalfd");
  return fd;
}

std::optional<int> TakeSignal(const FileDescriptor& signals) {
  signalfd_siginfo signal{};
  if (read(signals.get(), &signal, sizeof signal) != sizeof signal)
    return std::nullopt;
  return static_cast<int>(signal.ssi_signo);
}

}  // namespace purser::base
