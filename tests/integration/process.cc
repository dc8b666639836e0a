// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace purser::integration {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool Readable(int fd, std::chrono::milliseconds timeout) {
  pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&waited, 1, static_cast<int>(timeout.count())) == 1;
}

std::chrono::milliseconds Until(Clock::time_point deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline - Clock::now()));
}

}  // namespace

Process::Process(std::vector<std::string> arguments,
                 std::vector<std::string> environment) {
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("PURSER_"))
      environment.push_back(*entry);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  pipe_ = base::FileDescriptor(ends[0]);
  const base::FileDescriptor writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  const int error =
      posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr,
                  Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  pidfd_ =
      base::FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_.valid()) throw std::runtime_error("pidfd_open");
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      exit_code_(other.exit_code_),
      pipe_(std::move(other.pipe_)),
      pidfd_(std::move(other.pidfd_)),
      output_(std::move(other.output_)) {}

Process::~Process() {
  if (pid_ < 0 || exit_code_.has_value()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::Signal(int number) {
  if (!exit_code_.has_value()) kill(pid_, number);
}

std::optional<int> Process::Wait(std::chrono::milliseconds timeout) {
  if (exit_code_.has_value()) return exit_code_;
  const Clock::time_point deadline = Clock::now() + timeout;
  // It may wait for its output to be read.
  while (Read(Until(deadline)) && Clock::now() < deadline) continue;
  if (!Readable(pidfd_.get(), Until(deadline))) return std::nullopt;
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

bool Process::WaitForOutput(std::string_view text,
                            std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  while (output_.find(text) == std::string::npos)
    if (!Read(Until(deadline))) return false;
  return true;
}

bool Process::Read(std::chrono::milliseconds timeout) {
  if (!Readable(pipe_.get(), timeout)) return false;
  char buffer[4096];
  const ssize_t length = read(pipe_.get(), buffer, sizeof(buffer));
  if (length <= 0) return false;
  output_.append(buffer, static_cast<size_t>(length));
  return true;
}

}  // namespace purser::integration
