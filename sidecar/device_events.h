// SPDX-License-Identifier: Apache-2.0
//
// Reads everything that an opened device tells by itself: completion events of
// all queue pairs, asynchronous events, and that it is gone. One completion
// channel for the device instead of one for each queue pair, so that ten
// thousand queue pairs cost one file descriptor, and waiting for completions
// costs no thread. Finds a queue pair's QueuePairEvents in qp_context, and a
// BrokeredCompletionQueue in cq_context.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sidecar/opened_device.h"

namespace purser::sidecar {

class DeviceEvents {
 public:
  // `device` outlives it. `stop_fd`: readable when to stop.
  DeviceEvents(OpenedDevice& device, int stop_fd,
               std::chrono::milliseconds look_every);

  // Reads events until the device is lost; why, for people. Hardware says so by
  // an event; soft-RoCE's sysfs entry, which is looked at every `look_every`,
  // is gone. nullopt: stopped, or events can no longer be waited for.
  std::optional<std::string> ReadUntilLost();

 private:
  using Clock = std::chrono::steady_clock;
  bool IsThere();
  int UntilNextLook() const;  // as poll() takes it
  // False: nothing more will come from there.
  bool ReadCompletionEvents();
  bool ReadAsyncEvents();
  void Handle(ibv_async_event& event);

  OpenedDevice& device_;
  const int stop_fd_;
  const std::chrono::milliseconds look_every_;
  Clock::time_point next_look_;
  bool fatal_ = false;
};

}  // namespace purser::sidecar
