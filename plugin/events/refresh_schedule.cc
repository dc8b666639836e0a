// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/refresh_schedule.h"

#include <algorithm>
#include <array>

namespace purser::plugin {
namespace {

using std::chrono::milliseconds;

// After an event. Soft-RoCE's port changes 1.2 ms after rtnetlink tells; a
// busy machine takes longer.
constexpr std::array kLooks = {
    milliseconds(0),  milliseconds(5),  milliseconds(10), milliseconds(20),
    milliseconds(40), milliseconds(80), milliseconds(200)};
constexpr milliseconds kBetweenLooks(5);
// GIDs follow their addresses by the kernel's work queue.
constexpr milliseconds kScanAfterEvent(30);
constexpr int kRestPerScan = 9;

}  // namespace

RefreshSchedule::RefreshSchedule(Times times, TimePoint now)
    : times_(times),
      last_look_(now),
      last_scan_(now),
      event_at_(now),
      looks_done_(kLooks.size()) {}

void RefreshSchedule::OnEvent(RefreshCause cause, TimePoint now) {
  event_cause_ = cause;
  event_at_ = now;
  looks_done_ = 0;
  if (scan_wanted_since_) return;
  scan_wanted_since_ = now;
  scan_cause_ = cause;
}

RefreshSchedule::TimePoint RefreshSchedule::NextLook() const {
  const TimePoint regular = last_look_ + times_.look;
  if (looks_done_ == kLooks.size()) return regular;
  return std::min(regular, std::max(event_at_ + kLooks[looks_done_],
                                    last_look_ + kBetweenLooks));
}

std::optional<RefreshSchedule::TimePoint> RefreshSchedule::NextScan() const {
  std::optional<TimePoint> next;
  if (times_.scan.count() > 0) next = last_scan_ + times_.scan;
  auto earlier = [&](TimePoint at) { next = next ? std::min(*next, at) : at; };
  if (held_until_) earlier(*held_until_);
  if (scan_wanted_since_)
    earlier(std::max(*scan_wanted_since_ + kScanAfterEvent,
                     last_scan_ + kRestPerScan * last_scan_took_));
  return next;
}

RefreshSchedule::TimePoint RefreshSchedule::next() const {
  const TimePoint look = NextLook();
  return std::min(look, NextScan().value_or(look));
}

std::optional<RefreshSchedule::Due> RefreshSchedule::Take(TimePoint now) const {
  if (held_until_ && *held_until_ <= now)
    return Due{Step::kScan, RefreshCause::kDebounce};
  if (const auto scan = NextScan(); scan && *scan <= now)
    return Due{Step::kScan,
               scan_wanted_since_ ? scan_cause_ : RefreshCause::kTimer};
  if (NextLook() > now) return std::nullopt;
  return Due{Step::kLook,
             looks_done_ < kLooks.size() ? event_cause_ : RefreshCause::kLook};
}

void RefreshSchedule::Looked(TimePoint now) {
  last_look_ = now;
  // Those that were missed meanwhile are made up for by this one.
  while (looks_done_ < kLooks.size() && event_at_ + kLooks[looks_done_] <= now)
    ++looks_done_;
}

void RefreshSchedule::Glanced(TimePoint began) {
  Looked(began);
  if (scan_wanted_since_) return;
  scan_wanted_since_ = began;
  scan_cause_ = RefreshCause::kLook;
}

void RefreshSchedule::Scanned(TimePoint began, TimePoint ended) {
  Looked(began);
  last_scan_ = ended;
  last_scan_took_ = ended - began;
  // A scan too soon after an event shows no more than a glance.
  if (scan_wanted_since_ && *scan_wanted_since_ + kScanAfterEvent <= began)
    scan_wanted_since_.reset();
}

}  // namespace purser::plugin
