// SPDX-License-Identifier: Apache-2.0
#include "plugin/wakeup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace purser::plugin {

absl::StatusOr<std::shared_ptr<Wakeup>> Wakeup::Create() {
  base::FileDescriptor fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  return std::shared_ptr<Wakeup>(new Wakeup(std::move(fd)));
}

void Wakeup::Notify() {
  const uint64_t one = 1;
  // It can only fail where the counter is full, that is, notified already.
  [[maybe_unused]] ssize_t written = write(fd_.get(), &one, sizeof one);
}

void Wakeup::Drain() {
  uint64_t count = 0;
  [[maybe_unused]] ssize_t taken = read(fd_.get(), &count, sizeof count);
}

}  // namespace purser::plugin
