// SPDX-License-Identifier: Apache-2.0
//
// Follows one device through its removals and returns, on a thread of its own,
// which reads the device's events while it is open. When the device is lost,
// all that is on it must be destroyed at once: its removal from the node hangs
// in the kernel until this process has closed it. When it is back it is opened
// anew, as often as that happens.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "rdma/uverbs_entry.h"
#include "sidecar/device.h"

namespace purser::sidecar {

class DeviceWatch {
 public:
  struct Times {
    // For the device's removal and return. Under half a second, so that it is
    // closed within two.
    std::chrono::milliseconds look_every{400};
    // A device that cannot be opened, or reported a fatal error and is still
    // there; the waits double up to this.
    std::chrono::milliseconds retry_every{10000};
  };
  // Called on the watch's thread after Device::Lose(); to destroy all that is
  // on the device. `why` for people.
  using OnLost = std::function<void(const std::string& why)>;

  // `device` outlives the watch.
  static absl::StatusOr<std::unique_ptr<DeviceWatch>> Start(Device& device,
                                                            OnLost on_lost,
                                                            Times times);
  // Waits for OnLost, if that runs.
  ~DeviceWatch();

 private:
  DeviceWatch(Device& device, OnLost on_lost, Times times);
  void Run();
  // False: to stop.
  bool UntilLost();
  bool UntilOpen();
  void TryToOpen(const rdma::UverbsEntry& entry);
  bool StopsWithin(std::chrono::milliseconds wait) const;

  using Clock = std::chrono::steady_clock;
  // The attempts to open the device by one sysfs entry.
  struct Attempts {
    rdma::UverbsEntry entry;
    int failures = 0;
    std::chrono::milliseconds wait{0};
    Clock::time_point next;
    std::string logged;
  };

  Device& device_;
  const OnLost on_lost_;
  const Times times_;
  base::FileDescriptor stop_event_;
  Attempts attempts_;  // the watch's thread's
  std::thread thread_;
};

}  // namespace purser::sidecar
