// SPDX-License-Identifier: Apache-2.0
#include "sidecar/shared_receive_queues.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "sidecar/create_failure.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {

SharedReceiveQueues::SharedReceiveQueues(const Clients& clients,
                                         const Admission& admission,
                                         Counters& counters,
                                         Undestroyed& undestroyed,
                                         std::string proc_root)
    : clients_(clients),
      admission_(admission),
      counters_(counters),
      undestroyed_(undestroyed),
      proc_root_(std::move(proc_root)) {}

SharedReceiveQueues::~SharedReceiveQueues() {
  EndWhere(absl::UnavailableError("the sidecar is stopping"),
           [](const auto&) { return true; });
}

SharedReceiveQueues::CreateResult SharedReceiveQueues::Create(
    const CreateRequest& request) {
  CreateResult result = Admit(request);
  if (const Refusal* refusal = std::get_if<Refusal>(&result))
    counters_.admissions.Add("refused", RefusalReasonName(refusal->reason));
  else if (std::holds_alternative<Queue>(result))
    counters_.admissions.Add("granted", "fits");
  return result;
}

SharedReceiveQueues::CreateResult SharedReceiveQueues::Admit(
    const CreateRequest& request) {
  absl::StatusOr<std::string> client_name = clients_.NameOf(request.client_id);
  if (!client_name.ok()) return client_name.status();
  absl::StatusOr<std::shared_ptr<OpenedDevice>> opened =
      request.device->Opened();
  if (!opened.ok()) return opened.status();
  const Owner owner{.class_name = request.class_name.empty()
                                      ? kDefaultClass
                                      : request.class_name,
                    .client = *std::move(client_name),
                    .client_id = request.client_id};
  std::variant<SharedReceiveGrant, Refusal> admitted =
      admission_.AdmitSharedReceiveQueue((*opened)->traits(), request.wanted,
                                         owner);
  if (Refusal* refusal = std::get_if<Refusal>(&admitted))
    return std::move(*refusal);
  auto& grant = std::get<SharedReceiveGrant>(admitted);

  BrokeredSharedReceiveQueue::Parts parts{.opened = *opened,
                                          .lease = std::move(grant.lease)};
  ibv_srq_init_attr init{.attr = {.max_wr = request.wanted.max_wr,
                                  .max_sge = request.wanted.max_sge}};
  absl::StatusOr<rdma::SharedReceiveQueue> srq =
      rdma::CreateSrq((*opened)->verbs(), (*opened)->pd(), init);
  if (!srq.ok()) {
    if ((*opened)->lost()) return LostMeanwhile(request.device->name());
    return CreateFailure("srq", srq.status(), grant.predicted, proc_root_,
                         counters_);
  }
  parts.srq = *std::move(srq);
  BrokeredSharedReceiveQueue::Facts facts{
      .device = request.device,
      .owner = admission_.accounts().AccountOf(owner),
      .attr = init.attr,
      .slots =
          std::max(grant.predicted.shared_receive_ring.slots, init.attr.max_wr),
      .memory = grant.predicted};
  return Publish(**opened, std::move(facts), std::move(parts));
}

SharedReceiveQueues::CreateResult SharedReceiveQueues::Publish(
    const OpenedDevice& opened, BrokeredSharedReceiveQueue::Facts facts,
    BrokeredSharedReceiveQueue::Parts parts) {
  TrafficShares shares = {clients_.TrafficOf(facts.owner->client_id), nullptr};
  std::unique_lock lock(mutex_);
  facts.id = ++last_id_;
  const bool live = clients_.IsLive(facts.owner->client_id);
  auto queue = std::make_shared<BrokeredSharedReceiveQueue>(
      std::move(facts), std::move(parts), counters_, std::move(shares));
  if (live && !opened.lost()) {
    queues_.emplace(queue->facts().id, queue);
    return queue;
  }
  lock.unlock();
  const absl::Status why =
      live ? LostMeanwhile(opened.name())
           : absl::UnauthenticatedError(
                 "the client's Attach stream ended during the creation; the "
                 "shared receive queue was destroyed");
  queue->End(why, undestroyed_);
  return why;
}

absl::StatusOr<SharedReceiveQueues::Queue> SharedReceiveQueues::FindLocked(
    const std::string& client_id, uint64_t id) const {
  const auto found = queues_.find(id);
  if (found == queues_.end())
    return absl::NotFoundError(
        fmt::format("no shared receive queue {}: it was destroyed, never "
                    "created, or ended with its device",
                    id));
  if (found->second->facts().owner->client_id != client_id)
    return absl::PermissionDeniedError(
        fmt::format("shared receive queue {} belongs to another client", id));
  return found->second;
}

absl::StatusOr<SharedReceiveQueues::Queue> SharedReceiveQueues::Find(
    const std::string& client_id, uint64_t id) const {
  PURSER_RETURN_IF_ERROR(clients_.NameOf(client_id).status());
  std::lock_guard lock(mutex_);
  return FindLocked(client_id, id);
}

absl::StatusOr<SharedReceiveUse> SharedReceiveQueues::Use(
    const std::string& client_id, uint64_t id) const {
  std::lock_guard lock(mutex_);
  PURSER_ASSIGN_OR_RETURN(Queue queue, FindLocked(client_id, id));
  return SharedReceiveUse(std::move(queue));
}

absl::StatusOr<BrokeredSharedReceiveQueue::Ended> SharedReceiveQueues::Destroy(
    const std::string& client_id, uint64_t id) {
  PURSER_RETURN_IF_ERROR(clients_.NameOf(client_id).status());
  Queue queue;
  {
    std::lock_guard lock(mutex_);
    PURSER_ASSIGN_OR_RETURN(queue, FindLocked(client_id, id));
    if (queue->users() > 0)
      return absl::FailedPreconditionError(
          fmt::format("{} queue pairs use shared receive queue {}: destroy "
                      "them first",
                      queue->users(), id));
    queues_.erase(id);
  }
  return queue->End(absl::NotFoundError(fmt::format(
                        "shared receive queue {} was destroyed meanwhile", id)),
                    undestroyed_);
}

std::vector<SharedReceiveQueues::Queue> SharedReceiveQueues::All() const {
  std::vector<Queue> all;
  std::lock_guard lock(mutex_);
  for (const auto& [id, queue] : queues_) all.push_back(queue);
  return all;
}

void SharedReceiveQueues::EndWhere(
    const absl::Status& why,
    const std::function<bool(const BrokeredSharedReceiveQueue::Facts&)>& ends) {
  std::vector<Queue> ending;
  {
    std::lock_guard lock(mutex_);
    for (auto entry = queues_.begin(); entry != queues_.end();) {
      const auto next = std::next(entry);
      if (ends(entry->second->facts()))
        ending.push_back(std::move(queues_.extract(entry).mapped()));
      entry = next;
    }
  }
  for (const Queue& queue : ending) queue->End(why, undestroyed_);
}

void SharedReceiveQueues::EndClient(const std::string& client_id) {
  EndWhere(
      absl::NotFoundError("the shared receive queue's client has ended"),
      [&](const auto& facts) { return facts.owner->client_id == client_id; });
}

void SharedReceiveQueues::EndDevice(const Device& device,
                                    const std::string& why) {
  EndWhere(absl::UnavailableError(
               fmt::format("the shared receive queue has ended: {}", why)),
           [&](const auto& facts) { return facts.device == &device; });
}

}  // namespace purser::sidecar
