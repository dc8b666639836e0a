// SPDX-License-Identifier: Apache-2.0
//
// The shared receive queues that the sidecar holds for its clients. Each is one
// client's and ends with it, after the client's queue pairs. Any thread.
#pragma once

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
#include "sidecar/brokered_shared_receive_queue.h"
#include "sidecar/clients.h"
#include "sidecar/counters.h"
#include "sidecar/device.h"
#include "sidecar/undestroyed.h"

namespace purser::sidecar {

class SharedReceiveQueues {
 public:
  using Queue = std::shared_ptr<BrokeredSharedReceiveQueue>;
  struct CreateRequest {
    std::string client_id;
    Device* device = nullptr;  // outlives it
    queue_memory::SharedReceiveQueueRequest wanted;
    std::string class_name;  // "": the default class
  };
  using CreateResult = std::variant<Queue, Refusal, absl::Status>;

  SharedReceiveQueues(const Clients& clients, const Admission& admission,
                      Counters& counters, Undestroyed& undestroyed,
                      std::string proc_root);
  ~SharedReceiveQueues();

  // As QueuePairs::Create().
  CreateResult Create(const CreateRequest& request);
  // Unauthenticated, NotFound, PermissionDenied (another client's).
  absl::StatusOr<Queue> Find(const std::string& client_id, uint64_t id) const;
  // For a queue pair, which keeps it from being destroyed.
  absl::StatusOr<SharedReceiveUse> Use(const std::string& client_id,
                                       uint64_t id) const;
  // FailedPrecondition while queue pairs use it.
  absl::StatusOr<BrokeredSharedReceiveQueue::Ended> Destroy(
      const std::string& client_id, uint64_t id);
  std::vector<Queue> All() const;

  // Ends what a client that was removed from Clients held, or what was on a
  // lost device; their queue pairs have ended before.
  void EndClient(const std::string& client_id);
  void EndDevice(const Device& device, const std::string& why);

 private:
  CreateResult Admit(const CreateRequest& request);
  CreateResult Publish(const OpenedDevice& opened,
                       BrokeredSharedReceiveQueue::Facts facts,
                       BrokeredSharedReceiveQueue::Parts parts);
  void EndWhere(
      const absl::Status& why,
      const std::function<bool(const BrokeredSharedReceiveQueue::Facts&)>&
          ends);
  absl::StatusOr<Queue> FindLocked(const std::string& client_id,
                                   uint64_t id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clients& clients_;
  const Admission& admission_;
  Counters& counters_;
  Undestroyed& undestroyed_;
  const std::string proc_root_;
  mutable std::mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Queue> queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
