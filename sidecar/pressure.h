// SPDX-License-Identifier: Apache-2.0
//
// How short memory is, for those who would pay for more queue memory: the
// container, by its memory cgroup, and the node. Pure; the figures come from
// LimitsWatch.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/cgroup_usage.h"

namespace purser::sidecar {

enum class PressureScope { kContainer, kNode };
const char* PressureScopeName(PressureScope scope);  // "container", "node"

// kTight: nothing grows but classes marked core. kCritical: nothing grows.
enum class PressureState { kNormal, kTight, kCritical };
const char* PressureStateName(PressureState state);  // "normal", …

struct Pressure {
  PressureState state = PressureState::kNormal;
  std::string why;  // the figure and the threshold that it passed, for people
};

struct PressureThresholds {
  // Of the memory limit, or of the node's memory, in use: 0 to 1.
  double tight_used = 0.85, critical_used = 0.95;
  // Percent of the last 10 s: in which some task waited for memory, and in
  // which all did.
  double tight_some = 10, critical_full = 10;
  // How long all must be well before a state is left.
  std::chrono::milliseconds calm{5000};
};
inline constexpr PressureThresholds kNodeThresholds = {.tight_used = 0.90,
                                                       .critical_used = 0.95};

struct PressureReading {
  std::optional<double> used;  // 0 to 1; nullopt: there is no limit
  std::string figures;         // what it is made of, for people
  std::optional<base::MemoryStall> stall;
  // Since the reading before.
  bool limit_hit = false, out_of_memory = false;
};

// One scope's state. A worse state is entered at once. It is left, one step at
// a time, when for `calm` the used part was below the threshold by a quarter of
// the distance between the two, and stalls below half of theirs. Not
// thread-safe.
class PressureTracker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit PressureTracker(const PressureThresholds& thresholds)
      : thresholds_(thresholds) {}

  // Whether the state changed.
  bool Update(const PressureReading& reading, TimePoint now);
  const Pressure& pressure() const { return pressure_; }

 private:
  const PressureThresholds thresholds_;
  Pressure pressure_;
  // Since then every reading allowed a better state.
  std::optional<TimePoint> calm_since_;
};

}  // namespace purser::sidecar
