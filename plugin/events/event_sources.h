// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "plugin/events/event_source.h"
#include "plugin/events/refresh_cause.h"

namespace purser::plugin {

// How one source fares; for metrics.
struct EventSourceState {
  RefreshCause cause = RefreshCause::kUevents;
  std::string reason;  // "" it is used; else why not, as a label
  uint64_t events = 0;
};

// The sources of events, each of which may be missing: what is not granted is
// said once in the log and all the time in the metrics, and found by the looks
// instead. Owned by App; the main thread's but for States().
class EventSources {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A source, or why there is none.
  void Add(RefreshCause cause,
           absl::StatusOr<std::unique_ptr<EventSource>> source);
  void Remove(RefreshCause cause, const std::string& reason);
  // A source that works, but tells nothing of this node's devices; "": it does.
  void Judge(RefreshCause cause, const std::string& reason);
  void Judge(RefreshCause cause, const absl::Status& status);

  // Until a source has an event, one of `others` is readable (negative ones are
  // left out), or `until`. The sources that had events.
  std::vector<RefreshCause> Wait(std::initializer_list<int> others,
                                 TimePoint until);
  std::vector<EventSourceState> States() const;

 private:
  void SetReason(RefreshCause cause, const std::string& reason);
  bool TakeEvents(RefreshCause cause);

  std::array<std::unique_ptr<EventSource>, kEventSources> sources_;
  CountByCause<kEventSources> events_;
  mutable std::mutex mutex_;
  std::array<std::string, kEventSources> reasons_ ABSL_GUARDED_BY(mutex_) = {
      "off", "off", "off"};
};

}  // namespace purser::plugin
