// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace purser::plugin {

// Wakes one thread that waits in poll(2): an eventfd. Notify() may be called
// from any thread and is remembered until Drain().
class Wakeup {
 public:
  static absl::StatusOr<std::shared_ptr<Wakeup>> Create();
  void Notify();
  void Drain();
  int fd() const { return fd_.get(); }

 private:
  explicit Wakeup(base::FileDescriptor fd) : fd_(std::move(fd)) {}
  const base::FileDescriptor fd_;
};

}  // namespace purser::plugin
