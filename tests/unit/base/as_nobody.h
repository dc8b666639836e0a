// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/fsuid.h>

#include <functional>
#include <thread>

namespace purser::base {

// Runs `body` in a thread whose file accesses are those of user 65534, so that
// permissions bind although the tests may run as root.
inline void AsNobody(const std::function<void()>& body) {
  std::jthread([&body] {
    setfsuid(65534);
    body();
  }).join();
}

}  // namespace purser::base
