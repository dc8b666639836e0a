// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace purser::plugin {

// Why the node's devices were read anew. Those that are sources of events come
// first.
enum class RefreshCause {
  kUevents,    // devices come, go and are renamed
  kRtnetlink,  // network interfaces and addresses change
  kAsync,      // what opened devices tell
  kStart,
  kLook,      // a look showed that something has changed
  kTimer,     // the configured interval is over
  kSignal,    // SIGHUP
  kDebounce,  // what was held back has become true
  kConfig,    // another configuration
};
inline constexpr size_t kRefreshCauses = 9;
inline constexpr size_t kEventSources = 3;

constexpr const char* RefreshCauseName(RefreshCause cause) {
  constexpr std::array<const char*, kRefreshCauses> kNames = {
      "uevents", "rtnetlink", "async_events", "start", "look",
      "timer",   "signal",    "debounce",     "config"};
  return kNames[static_cast<size_t>(cause)];
}

// Counts, written by the main thread and read by any.
template <size_t kCount>
class CountByCause {
 public:
  void Add(RefreshCause cause, uint64_t count = 1) {
    counts_[static_cast<size_t>(cause)] += count;
  }
  uint64_t Of(RefreshCause cause) const {
    return counts_[static_cast<size_t>(cause)];
  }

 private:
  std::array<std::atomic<uint64_t>, kCount> counts_{};
};

}  // namespace purser::plugin
