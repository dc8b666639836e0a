// SPDX-License-Identifier: Apache-2.0
//
// What the device refused to destroy. Each is kept with all that it holds, its
// lease above all, since its memory is still allocated, and is tried again
// until the device takes it. One thread, which sleeps while there is nothing.
// Owned by the Broker; declared before all that gives to it. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "sidecar/counters.h"

namespace purser::sidecar {

class OpenedDevice;

class Undestroyed {
 public:
  // Destroys it; OK once it is gone. What it owns returns when it is itself
  // destroyed.
  using Attempt = std::function<absl::Status()>;
  // By device and kind of object.
  using Counts = std::map<std::pair<std::string, std::string>, uint64_t>;

  Undestroyed(Counters& counters, std::chrono::milliseconds retry_every);
  // Tries a last time; what still fails ends with the process.
  ~Undestroyed();

  // `object`: "qp", "cq", "srq", "mr". `why`: what its destruction failed with,
  // to be counted and logged. Tries once more and lets go where the device is
  // lost.
  void Add(const OpenedDevice& opened, const std::string& object,
           const absl::Status& why, Attempt attempt);
  // The device is lost, and marked so: tries once more and lets go, so that it
  // can be closed, with which the kernel ends all that is on it.
  void GiveUp(const std::string& device);
  Counts counts() const;

 private:
  struct Entry {
    std::string device, object;
    Attempt attempt;
  };
  void Run(std::stop_token stop);
  void TryAll();
  // All of the device; null: of every one. What they held may come after them.
  void LetGo(const std::string* device);

  Counters& counters_;
  const std::chrono::milliseconds retry_every_;
  // Held while entries are tried; before mutex_.
  std::mutex trying_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace purser::sidecar
