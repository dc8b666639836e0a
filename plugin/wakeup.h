// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace purser::plugin {

// Wakes one thread that waits in poll(2): an eventfd. Notify() may be called
// from any thread and is remembered until Drain().
class Wakeup {
 public:
  static absl::StatusOr<std::shared_ptr<Wakeup>> Create();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  void Notify();
  void Drain();
  int fd() const { return fd_; }

 private:
  explicit Wakeup(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace purser::plugin
