// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace purser::plugin {

// What a change of takes effect at the next start alone.
inline constexpr std::array<const char*, 5> kFixedKeys = {
    "cdi.directory", "cdi.enabled", "kubeletRootDir", "metricsAddress",
    "registration"};

// Whether the configuration in use is what the file says, and since when it is
// in use; as metrics, too. Written by the main thread, read by any.
class ConfigStatus : public prometheus::Collectable {
 public:
  using WallTime = std::chrono::system_clock::time_point;
  struct State {
    // Why the file as it is now is not in use; "": it is.
    std::string refusal;
    WallTime loaded_at;
    uint64_t loaded = 0, refused = 0;  // since the start
    // Keys whose change waits for the next start of the plugin.
    std::set<std::string> pending;
  };

  void Loaded(WallTime now, std::set<std::string> pending = {});
  void Refused(std::string why);
  State state() const;

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable std::mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
