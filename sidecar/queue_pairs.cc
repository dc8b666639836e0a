// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pairs.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/logging.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "rdma/queue_pair_states.h"
#include "sidecar/memlock_hint.h"
#include "sidecar/workers.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

queue_memory::QueuePairRequest ModelRequest(ibv_qp_type type,
                                            const ibv_qp_cap& cap) {
  queue_memory::QueuePairRequest request{
      .max_send_wr = cap.max_send_wr,
      .max_send_sge = cap.max_send_sge,
      .max_inline_data = cap.max_inline_data,
      .max_recv_wr = cap.max_recv_wr,
      .max_recv_sge = cap.max_recv_sge,
  };
  if (type == IBV_QPT_UC) request.type = queue_memory::QueuePairType::kUc;
  if (type == IBV_QPT_UD) request.type = queue_memory::QueuePairType::kUd;
  return request;
}

// For destroying many queue pairs.
constexpr size_t kMaxThreads = 7;
constexpr size_t kPerThread = 32;

// Rings that the process itself allocates are pinned, so memlock bounds them;
// the kernel's are not.
bool PinsRings(const queue_memory::QueueMemory& memory) {
  return (memory.send + memory.receive + memory.completion).container > 0;
}

absl::Status LostMeanwhile(const std::string& device) {
  return absl::UnavailableError(
      fmt::format("device {} was lost meanwhile", device));
}

absl::Status Destroyed(uint64_t id) {
  return absl::NotFoundError(
      fmt::format("queue pair {} was destroyed meanwhile", id));
}

Refusal OutgrewPrediction(const Grant& grant, const Actual& actual) {
  Refusal refusal;
  refusal.reason = RefusalReason::kBudget;
  refusal.needed = actual.memory;
  refusal.needed_bytes = actual.charge.total();
  refusal.remedy =
      "report the device and its provider's version: the memory model does "
      "not fit it; until then leave more of the budget free";
  refusal.message = fmt::format(
      "the provider allocated {} bytes, more than the {} bytes predicted, and "
      "the difference does not fit the budget: the queue pair was destroyed",
      base::FormatCount(actual.charge.total()),
      base::FormatCount(grant.lease.charge().total()));
  return refusal;
}

}  // namespace

QueuePairs::QueuePairs(const Clients& clients, const Admission& admission,
                       Counters& counters, std::string proc_root)
    : clients_(clients),
      admission_(admission),
      counters_(counters),
      proc_root_(std::move(proc_root)) {}

QueuePairs::~QueuePairs() {
  DestroyAll(All(), [](uint64_t) {
    return absl::UnavailableError("the sidecar is stopping");
  });
}

QueuePairs::CreateResult QueuePairs::Create(const CreateRequest& request) {
  absl::StatusOr<std::string> client_name = clients_.NameOf(request.client_id);
  if (!client_name.ok()) return client_name.status();
  absl::StatusOr<std::shared_ptr<OpenedDevice>> opened =
      request.device->Opened();
  if (!opened.ok()) return opened.status();
  CreateResult result =
      Admit(request, *std::move(opened), *std::move(client_name));
  if (const Refusal* refusal = std::get_if<Refusal>(&result))
    counters_.admissions.Add("refused", RefusalReasonName(refusal->reason));
  else if (std::holds_alternative<std::shared_ptr<BrokeredQueuePair>>(result))
    counters_.admissions.Add("granted", "fits");
  return result;
}

QueuePairs::CreateResult QueuePairs::Admit(const CreateRequest& request,
                                           std::shared_ptr<OpenedDevice> opened,
                                           std::string client_name) {
  BrokeredQueuePair::Facts facts{
      .device = request.device,
      .owner = request.client_id,
      .client_name = std::move(client_name),
      .detached = request.detached,
      .class_name = kDefaultClass,
      .type = request.type,
      .request = ModelRequest(request.type, request.cap)};
  BrokeredQueuePair::Parts parts;
  parts.opened = std::move(opened);
  parts.live = LiveCount(parts.opened->live_queue_pairs());
  std::variant<Grant, Refusal> admitted = admission_.Admit(
      parts.opened->traits(), facts.request, parts.live.before());
  if (Refusal* refusal = std::get_if<Refusal>(&admitted))
    return std::move(*refusal);
  return Allocate(request, std::move(facts), std::move(parts),
                  std::get<Grant>(std::move(admitted)));
}

QueuePairs::CreateResult QueuePairs::Allocate(const CreateRequest& request,
                                              BrokeredQueuePair::Facts facts,
                                              BrokeredQueuePair::Parts parts,
                                              Grant grant) {
  const std::shared_ptr<OpenedDevice> opened = parts.opened;
  rdma::Verbs& verbs = opened->verbs();
  parts.events = std::make_shared<QueuePairEvents>();
  absl::StatusOr<rdma::CompletionQueue> cq =
      rdma::CreateCq(verbs, opened->context(), static_cast<int>(grant.cqe),
                     parts.events.get(), opened->channel());
  if (!cq.ok()) return CreateFailed("cq", cq.status(), grant, *opened);
  parts.cq = *std::move(cq);

  ibv_qp_init_attr init{.qp_context = parts.events.get(),
                        .send_cq = parts.cq.get(),
                        .recv_cq = parts.cq.get(),
                        .cap = request.cap,
                        .qp_type = request.type};
  absl::StatusOr<rdma::QueuePair> qp =
      rdma::CreateQp(verbs, opened->pd(), init);
  if (!qp.ok()) return CreateFailed("qp", qp.status(), grant, *opened);
  parts.qp = *std::move(qp);

  const Actual actual =
      ActualCharge(grant, init.cap, static_cast<uint32_t>(parts.cq->cqe));
  if (!actual.mismatch.empty()) {
    counters_.model_mismatches.Add(facts.device->name());
    base::LogWarn(
        "the memory model does not fit the device",
        {{"device", facts.device->name()}, {"mismatch", actual.mismatch}});
  }
  if (!grant.lease.Commit(actual.charge))
    return OutgrewPrediction(grant, actual);
  parts.lease = std::move(grant.lease);
  facts.id = ++last_id_;
  facts.cap = init.cap;
  facts.qp_num = parts.qp->qp_num;
  facts.memory = actual.memory;
  return Publish(*opened, std::make_shared<BrokeredQueuePair>(
                              std::move(facts), std::move(parts), counters_));
}

QueuePairs::CreateResult QueuePairs::CreateFailed(const char* object,
                                                  const absl::Status& status,
                                                  const Grant& grant,
                                                  const OpenedDevice& opened) {
  if (opened.lost()) return LostMeanwhile(opened.name());
  const int error = rdma::ErrnoOf(status);
  counters_.create_failures.Add(object, rdma::ErrnoName(error));
  Refusal refusal;
  refusal.reason = RefusalReason::kCreateFailed;
  refusal.limit = rdma::ErrnoName(error);
  std::string hint;
  if (error == ENOMEM && PinsRings(grant.predicted))
    hint = MemlockHint(proc_root_);
  refusal.message = std::string(status.message()) + hint;
  refusal.remedy =
      !hint.empty() ? "let the sidecar pin memory: IPC_LOCK or a higher "
                      "memlock limit"
      : error == ENOMEM
          ? "the device or the node is out of memory or objects: destroy queue "
            "pairs that are not needed, or ask for fewer work requests"
          : "ask for fewer work requests, scatter/gather entries or less "
            "inline "
            "data";
  return refusal;
}

QueuePairs::CreateResult QueuePairs::Publish(
    const OpenedDevice& opened, std::shared_ptr<BrokeredQueuePair> queue_pair) {
  std::unique_lock lock(mutex_);
  const bool live = clients_.IsLive(queue_pair->facts().owner);
  if (live && !opened.lost()) {
    queue_pairs_.emplace(queue_pair->facts().id, queue_pair);
    return queue_pair;
  }
  lock.unlock();
  const absl::Status why =
      live ? LostMeanwhile(opened.name())
           : absl::UnauthenticatedError(
                 "the client's Attach stream ended during the creation; the "
                 "queue pair was destroyed");
  queue_pair->Destroy(why);
  return why;
}

absl::StatusOr<std::shared_ptr<BrokeredQueuePair>> QueuePairs::Find(
    const std::string& client_id, uint64_t id) const {
  PURSER_RETURN_IF_ERROR(clients_.NameOf(client_id).status());
  std::lock_guard lock(mutex_);
  if (const auto lost = lost_.find(id); lost != lost_.end())
    return lost->second.why;
  const auto found = queue_pairs_.find(id);
  if (found == queue_pairs_.end())
    return absl::NotFoundError(fmt::format(
        "no queue pair {}: it was destroyed, or never created", id));
  const BrokeredQueuePair::Facts& facts = found->second->facts();
  if (facts.owner != client_id && !facts.detached)
    return absl::PermissionDeniedError(
        fmt::format("queue pair {} belongs to another client (\"{}\") and is "
                    "not detached",
                    id, facts.client_name));
  return found->second;
}

absl::StatusOr<uint64_t> QueuePairs::Destroy(const std::string& client_id,
                                             uint64_t id) {
  absl::StatusOr<std::shared_ptr<BrokeredQueuePair>> queue_pair =
      Find(client_id, id);
  {
    std::lock_guard lock(mutex_);
    lost_.erase(id);
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

void QueuePairs::EndClient(const std::string& client_id) {
  Ending ending;
  {
    std::lock_guard lock(mutex_);
    ending = Take([&](const BrokeredQueuePair::Facts& facts) {
      return facts.owner == client_id && !facts.detached;
    });
    std::erase_if(lost_, [&](const auto& entry) {
      return entry.second.owner == client_id;
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
      if (clients_.IsLive(facts.owner))
        lost_[facts.id] = {facts.owner, reason(facts.id)};
    }
  }
  DestroyAll(ending, reason);
  return ending.size();
}

void QueuePairs::DestroyAll(
    const Ending& ending, const std::function<absl::Status(uint64_t id)>& why) {
  std::atomic<size_t> next = 0;
  const auto destroy = [&] {
    for (size_t i = next++; i < ending.size(); i = next++)
      ending[i]->Destroy(why(ending[i]->facts().id));
  };
  const size_t threads = std::min(ending.size() / kPerThread, kMaxThreads);
  Workers others(threads, threads);  // its end waits for them
  for (size_t i = 0; i < threads && others.Run(destroy); ++i) continue;
  destroy();
}

QueuePairs::Ending QueuePairs::Take(
    const std::function<bool(const BrokeredQueuePair::Facts&)>& ends) {
  Ending taken;
  for (auto entry = queue_pairs_.begin(); entry != queue_pairs_.end();) {
    const auto next = std::next(entry);
    if (ends(entry->second->facts()))
      taken.push_back(std::move(queue_pairs_.extract(entry).mapped()));
    entry = next;
  }
  return taken;
}

}  // namespace purser::sidecar
