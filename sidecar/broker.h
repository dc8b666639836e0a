// SPDX-License-Identifier: Apache-2.0
//
// All that the sidecar does for its clients, without gRPC: who is attached, the
// queue pairs, shared receive queues and memory regions they hold, and the end
// of these when a client or a device ends. Owned by the App; every method from
// any thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "sidecar/clients.h"
#include "sidecar/device_watch.h"
#include "sidecar/pressure.h"
#include "sidecar/queue_pairs.h"
#include "sidecar/regions.h"
#include "sidecar/shared_receive_queues.h"
#include "sidecar/undestroyed.h"
#include "sidecar/workers.h"

namespace purser::sidecar {

// What a client is told without having asked.
struct DeviceLostEvent {
  std::string device;
};
struct PressureEvent {
  PressureScope scope = PressureScope::kNode;
  Pressure pressure;
};
using ClientEvent = std::variant<DeviceLostEvent, PressureEvent>;

class Broker {
 public:
  struct Options {
    uint64_t max_clients = 256;
    std::string shared_volume = "/run/purser";
    std::string proc_root = "/proc";
    DeviceWatch::Times times{};
    // Of what the device refused to destroy.
    std::chrono::milliseconds destroy_again_every{1000};
  };
  // `devices`: at least one, the first is the default. All arguments outlive
  // the broker.
  static absl::StatusOr<std::unique_ptr<Broker>> Create(
      std::vector<Device*> devices, const Admission& admission,
      Counters& counters, Options options);
  // All that clients hold is destroyed.
  ~Broker() = default;

  // The client_id. `on_event` is called until Detach() returns, for a lost
  // device after what was on it was destroyed; it must not block or call the
  // broker.
  absl::StatusOr<std::string> Attach(
      const std::string& name,
      std::function<void(const ClientEvent& event)> on_event);
  // The client_id is invalid at once; what the client holds ends soon after, on
  // the broker's own thread.
  void Detach(const std::string& client_id);

  // Gives back what is in no use, of queues and of the sidecar's own memory; on
  // a thread of the broker's own, soon, unless it does so already.
  void GiveBack();
  // Tells all clients.
  void PressureChanged(PressureScope scope, const Pressure& pressure);

  // Unavailable while a device is not open; says which and why.
  absl::Status Ready() const;

  const std::vector<Device*>& devices() const { return devices_; }
  // Empty name: the first. NotFound lists the devices there are.
  absl::StatusOr<Device*> FindDevice(const std::string& name) const;
  const Clients& clients() const { return clients_; }
  QueuePairs& queue_pairs() { return *queue_pairs_; }
  SharedReceiveQueues& shared_receive_queues() {
    return *shared_receive_queues_;
  }
  const Undestroyed& undestroyed() const { return *undestroyed_; }
  Regions& regions() { return *regions_; }

 private:
  Broker(std::vector<Device*> devices, Counters& counters,
         uint64_t max_clients);
  void DeviceLost(const Device& device, const std::string& why);
  void GiveBackNow();
  void Tell(const ClientEvent& event);

  const std::vector<Device*> devices_;
  Counters& counters_;
  Clients clients_;
  std::mutex observers_mutex_;
  std::map<std::string, std::function<void(const ClientEvent&)>> observers_
      ABSL_GUARDED_BY(observers_mutex_);  // by client_id
  // The last of each scope; a client that comes later is told unless normal.
  std::map<PressureScope, Pressure> pressure_ ABSL_GUARDED_BY(observers_mutex_);
  std::unique_ptr<Undestroyed> undestroyed_;
  std::unique_ptr<Regions> regions_;
  std::unique_ptr<SharedReceiveQueues> shared_receive_queues_;
  std::unique_ptr<QueuePairs> queue_pairs_;
  // One thread: what a client held takes a system call an object to destroy,
  // for which gRPC's threads should not wait.
  Workers reaper_{1, SIZE_MAX};
  // A device may not answer when it is to make a queue smaller.
  Workers giver_{1, 1};
  std::vector<std::unique_ptr<DeviceWatch>> watches_;
};

}  // namespace purser::sidecar
