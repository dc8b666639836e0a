// SPDX-License-Identifier: Apache-2.0
#include "sidecar/pressure.h"

#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

// Thresholds by which a state is entered, or held once it was.
struct Lines {
  double tight_used, critical_used, tight_some, critical_full;
};

Lines ToEnter(const PressureThresholds& thresholds) {
  return {thresholds.tight_used, thresholds.critical_used,
          thresholds.tight_some, thresholds.critical_full};
}

Lines ToHold(const PressureThresholds& thresholds) {
  const double margin = (thresholds.critical_used - thresholds.tight_used) / 4;
  return {thresholds.tight_used - margin, thresholds.critical_used - margin,
          thresholds.tight_some / 2, thresholds.critical_full / 2};
}

std::string UsedText(const PressureReading& reading, double line) {
  return fmt::format("{:.1f} % in use ({}), threshold {:.1f} %",
                     *reading.used * 100, reading.figures, line * 100);
}

// `entry`: the lines by which a state is entered, which people know.
Pressure Judge(const PressureReading& reading, const Lines& lines,
               const Lines& entry) {
  using enum PressureState;
  if (reading.out_of_memory)
    return {kCritical, "the container ran out of memory"};
  if (reading.used && *reading.used >= lines.critical_used)
    return {kCritical, UsedText(reading, entry.critical_used)};
  if (reading.stall && reading.stall->full_avg10 >= lines.critical_full)
    return {kCritical,
            fmt::format("all tasks waited for memory {:.1f} % of the last 10 "
                        "s, threshold {:.1f} %",
                        reading.stall->full_avg10, entry.critical_full)};
  if (reading.used && *reading.used >= lines.tight_used)
    return {kTight, UsedText(reading, entry.tight_used)};
  if (reading.stall && reading.stall->some_avg10 >= lines.tight_some)
    return {kTight,
            fmt::format("tasks waited for memory {:.1f} % of the last 10 s, "
                        "threshold {:.1f} %",
                        reading.stall->some_avg10, entry.tight_some)};
  return {kNormal, reading.used ? UsedText(reading, entry.tight_used) : ""};
}

PressureState OneBetter(PressureState state) {
  return state == PressureState::kCritical ? PressureState::kTight
                                           : PressureState::kNormal;
}

}  // namespace

const char* PressureScopeName(PressureScope scope) {
  return scope == PressureScope::kContainer ? "container" : "node";
}

const char* PressureStateName(PressureState state) {
  switch (state) {
    case PressureState::kNormal:
      return "normal";
    case PressureState::kTight:
      return "tight";
    case PressureState::kCritical:
      return "critical";
  }
  return "unknown";
}

bool PressureTracker::Update(const PressureReading& reading, TimePoint now) {
  PressureReading read = reading;
  // At the limit the kernel takes back file pages first, which harms nobody:
  // only a working set near the limit makes it a sign.
  const Lines hold = ToHold(thresholds_), enter = ToEnter(thresholds_);
  const bool strained =
      read.limit_hit && read.used && *read.used >= hold.tight_used;
  Pressure entered = Judge(read, enter, enter);
  if (strained && entered.state == PressureState::kNormal)
    entered = {PressureState::kTight,
               "the memory limit was reached; " + entered.why};
  if (entered.state > pressure_.state) {
    pressure_ = std::move(entered);
    calm_since_.reset();
    return true;
  }
  Pressure held = Judge(read, hold, enter);
  if (strained && held.state == PressureState::kNormal)
    held.state = PressureState::kTight;
  if (held.state >= pressure_.state) {
    pressure_.why = std::move(held.why);
    calm_since_.reset();
    return false;
  }
  if (!calm_since_) calm_since_ = now;
  if (now - *calm_since_ < thresholds_.calm) return false;
  pressure_ = {OneBetter(pressure_.state), std::move(held.why)};
  calm_since_ = now;
  return true;
}

}  // namespace purser::sidecar
