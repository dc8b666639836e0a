// SPDX-License-Identifier: Apache-2.0
#include "plugin/health_debounce.h"

#include <algorithm>

namespace purser::plugin {

bool HealthDebounce::Tell(const std::string& device, bool healthy,
                          TimePoint now) {
  const auto [found, is_new] =
      states_.try_emplace(device, State{healthy, healthy, std::nullopt});
  State& state = found->second;
  if (is_new) return healthy;
  if (state.seen != healthy) {
    const bool alone = !state.changed_at || now - *state.changed_at >= time_;
    state.seen = healthy;
    state.changed_at = now;
    if (alone) state.told = healthy;
  } else if (state.told != healthy && now - *state.changed_at >= time_) {
    state.told = healthy;
  }
  return state.told;
}

void HealthDebounce::Keep(const std::set<std::string>& devices) {
  std::erase_if(states_, [&](const auto& entry) {
    return !devices.contains(entry.first);
  });
}

std::optional<HealthDebounce::TimePoint> HealthDebounce::next() const {
  std::optional<TimePoint> next;
  for (const auto& [device, state] : states_) {
    if (state.told == state.seen) continue;
    const TimePoint at = *state.changed_at + time_;
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

}  // namespace purser::plugin
