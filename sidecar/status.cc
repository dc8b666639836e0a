// SPDX-License-Identifier: Apache-2.0
#include "sidecar/status.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/messages.h"

namespace purser::sidecar {
namespace {

// Of one client or class, or of a client's part of one class.
struct Sums {
  uint32_t queue_pairs = 0;
  queue_memory::Charge memory;
  uint64_t backlog = 0, sends = 0, receives = 0;
};

struct Totals {
  std::map<std::string, Sums> by_client;  // by client_id
  std::map<std::string, Sums> by_class;
  std::map<std::pair<std::string, std::string>, Sums> by_both;

  template <typename Add>
  void Each(const Owner& owner, Add add) {
    add(by_client[owner.client_id]);
    add(by_class[owner.class_name]);
    add(by_both[{owner.client_id, owner.class_name}]);
  }
};

void AddQueuePairs(Broker& broker, Totals& totals) {
  for (const auto& queue_pair : broker.queue_pairs().All()) {
    const BrokeredQueuePair::Facts& facts = queue_pair->facts();
    const WorkQueue& work_queue = queue_pair->work_queue();
    const uint64_t backlog = work_queue.backlog();
    const uint64_t sends = work_queue.outstanding_sends();
    const uint64_t receives = work_queue.outstanding_receives();
    totals.Each(*facts.owner, [&](Sums& sums) {
      ++sums.queue_pairs;
      sums.memory += facts.shape->memory.total();
      sums.backlog += backlog;
      sums.sends += sends;
      sums.receives += receives;
    });
  }
}

void AddCompletionQueues(Broker& broker, Totals& totals,
                         v1::GetStatusResponse& response) {
  for (const auto& set : broker.queue_pairs().completion_queues()) {
    const CompletionQueueSet::Facts& facts = set->facts();
    for (const SharedCompletionQueueState& state : set->State()) {
      totals.Each(*facts.owner,
                  [&](Sums& sums) { sums.memory += state.memory.total(); });
      v1::CompletionQueue* message = response.add_completion_queues();
      message->set_id(state.id);
      message->set_device(facts.device->name);
      message->set_client_name(facts.owner->client);
      message->set_class_(facts.owner->class_name);
      message->set_name(facts.name);
      message->set_cqe(state.cqe);
      message->set_slots(state.slots);
      message->set_queue_pairs(state.queue_pairs);
      message->set_growths(state.growths);
      *message->mutable_memory() = QueueMemoryMessage(state.memory);
    }
  }
}

void AddSharedReceiveQueues(Broker& broker, Totals& totals,
                            v1::GetStatusResponse& response) {
  for (const auto& queue : broker.shared_receive_queues().All()) {
    const BrokeredSharedReceiveQueue::Facts& facts = queue->facts();
    const uint64_t receives = queue->outstanding();
    totals.Each(*facts.owner, [&](Sums& sums) {
      sums.memory += facts.memory.total();
      sums.receives += receives;
    });
    *response.add_shared_receive_queues() = SharedReceiveQueueMessage(*queue);
  }
}

void AddClients(Broker& broker, const Totals& totals,
                v1::GetStatusResponse& response) {
  using std::chrono::seconds;
  const auto now = std::chrono::steady_clock::now();
  const auto regions = broker.regions().ByClient();
  for (const auto& [client_id, attached] : broker.clients().All()) {
    v1::ClientStatus* message = response.add_clients();
    message->set_name(attached.name);
    message->set_attached_seconds(static_cast<uint64_t>(
        std::chrono::duration_cast<seconds>(now - attached.since).count()));
    Fill(*attached.traffic, *message->mutable_traffic());
    const auto found = totals.by_client.find(client_id);
    const Sums sums = found == totals.by_client.end() ? Sums() : found->second;
    message->set_queue_pairs(sums.queue_pairs);
    *message->mutable_memory() = ChargedBytesMessage(sums.memory);
    message->set_completion_backlog(sums.backlog);
    message->set_outstanding_sends(sums.sends);
    message->set_outstanding_receives(sums.receives);
    if (const auto held = regions.find(client_id); held != regions.end()) {
      message->set_memory_regions(held->second.count);
      message->set_registered_bytes(held->second.bytes);
    }
    for (auto both = totals.by_both.lower_bound({client_id, ""});
         both != totals.by_both.end() && both->first.first == client_id;
         ++both) {
      v1::ClassStatus* of = message->add_classes();
      of->set_name(both->first.second);
      of->set_queue_pairs(both->second.queue_pairs);
      *of->mutable_memory() = ChargedBytesMessage(both->second.memory);
    }
  }
  std::stable_sort(response.mutable_clients()->begin(),
                   response.mutable_clients()->end(),
                   [](const v1::ClientStatus& a, const v1::ClientStatus& b) {
                     return a.name() < b.name();
                   });
}

}  // namespace

v1::GetStatusResponse StatusMessage(Broker& broker) {
  v1::GetStatusResponse response;
  Totals totals;
  AddQueuePairs(broker, totals);
  AddCompletionQueues(broker, totals, response);
  AddSharedReceiveQueues(broker, totals, response);
  AddClients(broker, totals, response);
  for (const auto& [name, traffic] : broker.queue_pairs().traffic()) {
    v1::ClassStatus* message = response.add_classes();
    const Sums& sums = totals.by_class[name];
    message->set_name(name);
    message->set_queue_pairs(sums.queue_pairs);
    *message->mutable_memory() = ChargedBytesMessage(sums.memory);
    message->set_completion_backlog(sums.backlog);
    Fill(*traffic, *message->mutable_traffic());
  }
  uint64_t undestroyed = 0;
  for (const auto& [what, count] : broker.undestroyed().counts())
    undestroyed += count;
  response.set_undestroyed_objects(static_cast<uint32_t>(undestroyed));
  return response;
}

}  // namespace purser::sidecar
