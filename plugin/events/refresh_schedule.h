// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "plugin/events/refresh_cause.h"

namespace purser::plugin {

// When to look whether the node's devices have changed, and when to read all of
// them. A look is cheap and shows what health depends on; what it shows to have
// changed is read and told at once (a glance); a whole scan reads some hundred
// files for each port. Pure: the time is given. One thread.
//
// An event is answered by a look at once and a few more soon after, since the
// kernel may tell before sysfs shows it, and by one scan for all that no look
// shows (addresses, say); a glance, too. However many events come, looks keep a
// distance, and scans take no more than a tenth of a processor.
class RefreshSchedule {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  struct Times {
    std::chrono::milliseconds look{1000};
    std::chrono::milliseconds scan{10000};  // 0: on no timer
  };
  enum class Step { kLook, kScan };
  struct Due {
    Step step = Step::kLook;
    RefreshCause cause = RefreshCause::kLook;
  };

  RefreshSchedule(Times times, TimePoint now);
  void SetTimes(Times times) { times_ = times; }

  void OnEvent(RefreshCause cause, TimePoint now);
  // What was held back until then is to be told.
  void HoldBackUntil(std::optional<TimePoint> until) { held_until_ = until; }
  TimePoint next() const;
  // What is due now, if anything; do it, then call Looked() or Scanned(), or,
  // where a look has led to a glance, Glanced().
  std::optional<Due> Take(TimePoint now) const;
  void Looked(TimePoint now);
  void Glanced(TimePoint began);
  void Scanned(TimePoint began, TimePoint ended);

 private:
  TimePoint NextLook() const;
  std::optional<TimePoint> NextScan() const;

  Times times_;
  TimePoint last_look_;
  TimePoint last_scan_;  // its end
  Clock::duration last_scan_took_{0};
  // The looks that an event leads to.
  RefreshCause event_cause_ = RefreshCause::kLook;
  TimePoint event_at_;
  size_t looks_done_;
  std::optional<TimePoint> scan_wanted_since_;
  RefreshCause scan_cause_ = RefreshCause::kLook;
  std::optional<TimePoint> held_until_;
};

}  // namespace purser::plugin
