// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pairs.h"

#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

absl::Status Destroyed(uint64_t id) {
  return absl::NotFoundError(
      fmt::format("queue pair {} was destroyed meanwhile", id));
}

// Of a queue pair's facts, or of what is left of them.
template <typename Owned>
absl::Status CheckOwner(const std::string& client_id, uint64_t id,
                        const Owned& owned) {
  if (owned.owner->client_id == client_id || owned.detached)
    return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("queue pair {} belongs to another client (\"{}\") and is "
                  "not detached",
                  id, owned.owner->client));
}

}  // namespace

QueuePairs::QueuePairs(const Clients& clients, const Admission& admission,
                       const SharedReceiveQueues& shared_receive_queues,
                       Undestroyed& undestroyed, Counters& counters,
                       std::string proc_root)
    : clients_(clients),
      admission_(admission),
      shared_receive_queues_(shared_receive_queues),
      undestroyed_(undestroyed),
      counters_(counters),
      proc_root_(std::move(proc_root)),
      completion_queues_(undestroyed) {
  for (const ClassConfig& of : admission.accounts().config().classes)
    class_traffic_[of.name] = std::make_shared<Traffic>();
}

QueuePairs::~QueuePairs() {
  DestroyAll(All(), [](uint64_t) {
    return absl::UnavailableError("the sidecar is stopping");
  });
}

absl::StatusOr<std::shared_ptr<BrokeredQueuePair>> QueuePairs::Find(
    const std::string& client_id, uint64_t id) const {
  PURSER_RETURN_IF_ERROR(clients_.NameOf(client_id).status());
  std::lock_guard lock(mutex_);
  if (const auto lost = lost_.find(id); lost != lost_.end()) {
    PURSER_RETURN_IF_ERROR(CheckOwner(client_id, id, lost->second));
    return lost->second.why;
  }
  const auto found = queue_pairs_.find(id);
  if (found == queue_pairs_.end())
    return absl::NotFoundError(fmt::format(
        "no queue pair {}: it was destroyed, or never created", id));
  PURSER_RETURN_IF_ERROR(CheckOwner(client_id, id, found->second->facts()));
  return found->second;
}

absl::StatusOr<BrokeredQueuePair::Ended> QueuePairs::Destroy(
    const std::string& client_id, uint64_t id) {
  absl::StatusOr<std::shared_ptr<BrokeredQueuePair>> queue_pair =
      Find(client_id, id);
  {
    std::lock_guard lock(mutex_);
    if (absl::IsUnavailable(queue_pair.status())) {
      lost_.erase(id);
      return BrokeredQueuePair::Ended();
    }
    if (!queue_pair.ok()) return queue_pair.status();
    if (queue_pairs_.erase(id) == 0) return Destroyed(id);
  }
  return (*queue_pair)->Destroy(Destroyed(id));
}

QueuePairs::Page QueuePairs::List(uint64_t after_id, size_t page_size) const {
  Page page;
  std::lock_guard lock(mutex_);
  auto next = queue_pairs_.upper_bound(after_id);
  for (; next != queue_pairs_.end() && page.queue_pairs.size() < page_size;
       ++next)
    page.queue_pairs.push_back(next->second);
  page.more = next != queue_pairs_.end();
  return page;
}

std::vector<std::shared_ptr<BrokeredQueuePair>> QueuePairs::All() const {
  return List(0, SIZE_MAX).queue_pairs;
}

uint64_t QueuePairs::count() const {
  std::lock_guard lock(mutex_);
  return queue_pairs_.size();
}

uint64_t QueuePairs::GiveBack() {
  for (const auto& queue_pair : All()) queue_pair->work_queue().GiveBack();
  return completion_queues_.GiveBack();
}

void QueuePairs::EndClient(const std::string& client_id) {
  Ending ending;
  {
    std::lock_guard lock(mutex_);
    ending = Take([&](const BrokeredQueuePair::Facts& facts) {
      return facts.owner->client_id == client_id && !facts.detached;
    });
    std::erase_if(lost_, [&](const auto& entry) {
      return entry.second.owner->client_id == client_id;
    });
  }
  DestroyAll(ending, Destroyed);
}

size_t QueuePairs::EndDevice(const Device& device, const std::string& why) {
  const auto reason = [&](uint64_t id) {
    return absl::UnavailableError(
        fmt::format("queue pair {} has ended: {}", id, why));
  };
  Ending ending;
  {
    std::lock_guard lock(mutex_);
    ending = Take([&](const BrokeredQueuePair::Facts& facts) {
      return facts.device == &device;
    });
    for (const auto& queue_pair : ending) {
      const BrokeredQueuePair::Facts& facts = queue_pair->facts();
      if (clients_.IsLive(facts.owner->client_id))
        lost_[facts.id] = {facts.owner, facts.detached, reason(facts.id)};
    }
  }
  DestroyAll(ending, reason);
  return ending.size();
}

void QueuePairs::DestroyAll(
    const Ending& ending, const std::function<absl::Status(uint64_t id)>& why) {
  for (const auto& queue_pair : ending)
    queue_pair->Destroy(why(queue_pair->facts().id));
}

QueuePairs::Ending QueuePairs::Take(
    const std::function<bool(const BrokeredQueuePair::Facts&)>& ends) {
  Ending taken;
  for (auto entry = queue_pairs_.begin(); entry != queue_pairs_.end();) {
    if (ends(entry->second->facts())) {
      taken.push_back(std::move(entry->second));
      entry = queue_pairs_.erase(entry);
    } else {
      ++entry;
    }
  }
  return taken;
}

}  // namespace purser::sidecar
