// SPDX-License-Identifier: Apache-2.0
//
// The queue pairs that the sidecar holds for its clients, and the devices'
// event threads. Creation is admission, completion queue, queue pair, commit of
// the lease to what was really allocated; whatever fails on the way undoes all
// before it. The table's lock is never held across a verbs call. Any thread;
// outlives nothing that it was given.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "sidecar/admission.h"
#include "sidecar/brokered_queue_pair.h"
#include "sidecar/clients.h"
#include "sidecar/counters.h"
#include "sidecar/device.h"
#include "sidecar/device_events.h"

namespace purser::sidecar {

class QueuePairs {
 public:
  struct CreateRequest {
    std::string client_id;
    Device* device = nullptr;  // one of those given to the constructor
    ibv_qp_type type = IBV_QPT_RC;
    ibv_qp_cap cap{};
    bool detached = false;  // outlives the client; then any client may use it
  };
  using CreateResult =
      std::variant<std::shared_ptr<BrokeredQueuePair>, Refusal, absl::Status>;
  struct Page {
    std::vector<std::shared_ptr<BrokeredQueuePair>> queue_pairs;  // by id
    bool more = false;
  };

  QueuePairs(const std::vector<Device*>& devices, const Clients& clients,
             const Admission& admission, Counters& counters,
             std::string proc_root);
  ~QueuePairs();
  // Once, before anything else. `on_device_lost` runs on an event thread, at
  // most once for each device; EndDevice() is to be called then, from another
  // thread.
  absl::Status Start(
      const std::function<void(const std::string& device)>& on_device_lost);

  // Unauthenticated, Unavailable (the device is gone), or a Refusal.
  CreateResult Create(const CreateRequest& request);
  // Unauthenticated, NotFound, PermissionDenied (another client's).
  absl::StatusOr<std::shared_ptr<BrokeredQueuePair>> Find(
      const std::string& client_id, uint64_t id) const;
  // The bytes returned to the budget.
  absl::StatusOr<uint64_t> Destroy(const std::string& client_id, uint64_t id);
  Page List(uint64_t after_id, size_t page_size) const;
  std::vector<std::shared_ptr<BrokeredQueuePair>> All() const;
  uint64_t count() const;

  // Destroys what a client that was removed from Clients held, except detached
  // queue pairs.
  void EndClient(const std::string& client_id);
  // Destroys all of a lost device.
  void EndDevice(const std::string& device);

 private:
  struct PerDevice {
    Device* device = nullptr;
    std::atomic<uint64_t> live = 0;
    std::atomic<bool> lost = false;
    std::unique_ptr<DeviceEvents> events;
  };

  PerDevice& Entry(const Device* device) const;
  CreateResult Admit(const CreateRequest& request, PerDevice& device,
                     std::string client_name);
  CreateResult Allocate(const CreateRequest& request, PerDevice& device,
                        BrokeredQueuePair::Facts facts,
                        BrokeredQueuePair::Parts parts, Grant grant);
  Refusal CreateFailed(const char* object, const absl::Status& status,
                       const Grant& grant);
  CreateResult Publish(PerDevice& device,
                       std::shared_ptr<BrokeredQueuePair> queue_pair);
  void DestroyWhere(
      const std::function<bool(const BrokeredQueuePair::Facts&)>& ends);

  const Clients& clients_;
  const Admission& admission_;
  Counters& counters_;
  const std::string proc_root_;
  std::vector<std::unique_ptr<PerDevice>> devices_;  // fixed
  std::atomic<uint64_t> last_id_ = 0;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<BrokeredQueuePair>> queue_pairs_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
