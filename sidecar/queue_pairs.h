// SPDX-License-Identifier: Apache-2.0
//
// The queue pairs that the sidecar holds for its clients. Creation is
// admission, room in a completion queue, queue pair, commit of the lease to
// what was really allocated; whatever fails on the way undoes all before it.
// The table's lock is never held across a verbs call. Any thread; outlives
// nothing that it was given.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "sidecar/admission.h"
#include "sidecar/brokered_queue_pair.h"
#include "sidecar/clients.h"
#include "sidecar/completion_queues.h"
#include "sidecar/counters.h"
#include "sidecar/device.h"
#include "sidecar/shared_receive_queues.h"
#include "sidecar/undestroyed.h"

namespace purser::sidecar {

class QueuePairs {
 public:
  struct CreateRequest {
    std::string client_id;
    Device* device = nullptr;  // outlives the queue pair
    ibv_qp_type type = IBV_QPT_RC;
    ibv_qp_cap cap{};                   // all 0: the class's
    std::string class_name;             // "": the default class
    std::optional<ibv_qp_cap> least{};  // only its depths count
    bool detached = false;  // outlives the client; then any client may use it
    uint64_t send_ops = 0;  // declared (send_operations.h); 0: any
    CompletionOffer::Kind completions = CompletionOffer::Kind::kCheapest;
    std::string completion_queue;          // name of a shared one
    uint64_t shared_receive_queue_id = 0;  // 0: receives of its own
  };
  using CreateResult =
      std::variant<std::shared_ptr<BrokeredQueuePair>, Refusal, absl::Status>;
  struct Page {
    std::vector<std::shared_ptr<BrokeredQueuePair>> queue_pairs;  // by id
    bool more = false;
  };

  QueuePairs(const Clients& clients, const Admission& admission,
             const SharedReceiveQueues& shared_receive_queues,
             Undestroyed& undestroyed, Counters& counters,
             std::string proc_root);
  ~QueuePairs();

  // Unauthenticated, Unavailable (the device is not open), or a Refusal.
  // `shrunk`, where given, is set to the refusal of what was wanted if less was
  // granted.
  CreateResult Create(const CreateRequest& request,
                      std::optional<Refusal>* shrunk = nullptr);
  // Unauthenticated, NotFound, PermissionDenied (another client's), Unavailable
  // (it ended with its device).
  absl::StatusOr<std::shared_ptr<BrokeredQueuePair>> Find(
      const std::string& client_id, uint64_t id) const;
  // Nothing is returned to the budget for one that ended with its device.
  absl::StatusOr<BrokeredQueuePair::Ended> Destroy(const std::string& client_id,
                                                   uint64_t id);
  Page List(uint64_t after_id, size_t page_size) const;
  std::vector<std::shared_ptr<BrokeredQueuePair>> All() const;
  uint64_t count() const;
  // Those that are shared, and in use.
  std::vector<std::shared_ptr<CompletionQueueSet>> completion_queues() const {
    return completion_queues_.All();
  }
  // Gives back what is allocated and in no use: entries of completion queues
  // that none of their queue pairs needs, room for completions that were
  // fetched. The bytes that returned to the budget.
  uint64_t GiveBack();
  // By class.
  std::map<std::string, std::shared_ptr<Traffic>> traffic() const {
    return class_traffic_;
  }

  // Destroys what a client that was removed from Clients held, except detached
  // queue pairs.
  void EndClient(const std::string& client_id);
  // Destroys all of a lost device; how many. Until their client ends or
  // destroys them, calls that name them are told `why`.
  size_t EndDevice(const Device& device, const std::string& why);

 private:
  using Ending = std::vector<std::shared_ptr<BrokeredQueuePair>>;
  // A queue pair that ended with its device.
  struct Lost {
    std::shared_ptr<const Owner> owner;
    bool detached = false;
    absl::Status why;
  };

  CreateResult Admit(const CreateRequest& request,
                     std::shared_ptr<OpenedDevice> opened,
                     std::string client_name, std::optional<Refusal>& shrunk);
  // What makes a queue pair: its facts and parts so far, and the grant.
  struct Making {
    BrokeredQueuePair::Facts facts;
    QueuePairShape shape;
    BrokeredQueuePair::Parts parts;
    uint64_t live_before = 0;  // queue pairs on the device, without this one
    std::optional<Grant> grant;
  };
  // The grant, and room in a completion queue; what prevents it otherwise.
  std::optional<CreateResult> AdmitWithRoom(const CreateRequest& request,
                                            Making& making);
  CreateResult Allocate(const CreateRequest& request, Making making);
  CreateResult CreateFailed(const char* object, const absl::Status& status,
                            const Grant& grant, const OpenedDevice& opened);
  absl::StatusOr<SharedReceiveUse> UseOf(const CreateRequest& request) const;
  TrafficShares SharesOf(const BrokeredQueuePair::Facts& facts) const;
  CreateResult Publish(const OpenedDevice& opened,
                       std::shared_ptr<BrokeredQueuePair> queue_pair);
  // One by one: where several threads do it at once, soft-RoCE takes several
  // times as long.
  static void DestroyAll(const Ending& ending,
                         const std::function<absl::Status(uint64_t id)>& why);
  // Takes from the table.
  Ending Take(const std::function<bool(const BrokeredQueuePair::Facts&)>& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clients& clients_;
  const Admission& admission_;
  const SharedReceiveQueues& shared_receive_queues_;
  Undestroyed& undestroyed_;
  Counters& counters_;
  const std::string proc_root_;
  std::map<std::string, std::shared_ptr<Traffic>> class_traffic_;  // constant
  CompletionQueues completion_queues_;
  QueuePairShapes shapes_;
  std::atomic<uint64_t> last_id_ = 0;
  mutable std::mutex mutex_;
  absl::btree_map<uint64_t, std::shared_ptr<BrokeredQueuePair>> queue_pairs_
      ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Lost> lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
