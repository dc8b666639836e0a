// SPDX-License-Identifier: Apache-2.0
//
// Follows what bounds the queue memory while the sidecar runs: the container's
// memory limit, which may be changed in place, and how short memory is. One
// thread, which looks once a second and tells the Admission what changed. What
// cannot be read leaves things as they were, and is logged once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "sidecar/admission.h"
#include "sidecar/budget.h"
#include "sidecar/counters.h"
#include "sidecar/pressure.h"

namespace purser::sidecar {

// How to read it all; each may be called at any time.
struct LimitSources {
  std::function<absl::StatusOr<Budget>()> budget;
  std::function<absl::StatusOr<base::CgroupUsage>()> container;
  struct Node {
    uint64_t total_bytes = 0, available_bytes = 0;
    std::optional<base::MemoryStall> stall;
  };
  std::function<absl::StatusOr<Node>()> node;
};

class LimitsWatch {
 public:
  using TimePoint = PressureTracker::TimePoint;
  // Called on the watch's thread, after the Admission was told.
  using OnPressure =
      std::function<void(PressureScope scope, const Pressure& pressure)>;
  // Called on the watch's thread at every look while memory is critical: gives
  // back what is in no use.
  using GiveBack = std::function<void()>;
  struct Options {
    PressureThresholds container, node = kNodeThresholds;
    std::chrono::milliseconds look_every{1000};
  };

  // Looks once. `admission` and `counters` outlive the watch.
  LimitsWatch(LimitSources sources, Admission& admission, Counters& counters,
              OnPressure on_pressure, GiveBack give_back, Options options);
  // Ends the thread.
  ~LimitsWatch();

  void Start();
  // What the thread does, once. Not beside it.
  void Look(TimePoint now);

 private:
  // What was last logged about one source that cannot be read.
  using Fault = std::string;

  void LookAtBudget();
  void LookAtContainer(TimePoint now);
  void LookAtNode(TimePoint now);
  void Feel(PressureScope scope, PressureTracker& tracker,
            const PressureReading& reading, TimePoint now);
  static void Report(const char* what, const absl::Status& status,
                     Fault& fault);

  const LimitSources sources_;
  Admission& admission_;
  Counters& counters_;
  const OnPressure on_pressure_;
  const GiveBack give_back_;
  const Options options_;
  // The watch's thread's.
  PressureTracker container_, node_;
  std::optional<base::CgroupUsage> container_before_;
  Fault budget_fault_, container_fault_, node_fault_;

  std::mutex mutex_;
  std::condition_variable_any wakeup_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace purser::sidecar
