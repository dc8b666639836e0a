// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace purser::plugin {

// Which health of each device is told. A change is told at once if the one
// before it is longer ago than the debounce time, else only when it has lasted
// that long: a change that stands alone is told without delay, and a link that
// flaps does not make the kubelet refuse containers that restart. Pure: the
// time is given. One thread.
class HealthDebounce {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // 0: every change is told at once.
  explicit HealthDebounce(std::chrono::milliseconds time) : time_(time) {}

  void SetTime(std::chrono::milliseconds time) { time_ = time; }
  // What to tell of a device that is seen to be healthy or not. The first time
  // that it is seen is no change.
  bool Tell(const std::string& device, bool healthy, TimePoint now);
  // Forgets the devices that are not among these.
  void Keep(const std::set<std::string>& devices);
  // When something that is held back is to be told, unless it changes back.
  std::optional<TimePoint> next() const;

 private:
  struct State {
    bool seen, told;
    std::optional<TimePoint> changed_at;  // `seen` did
  };
  std::chrono::milliseconds time_;
  std::map<std::string, State> states_;
};

}  // namespace purser::plugin
