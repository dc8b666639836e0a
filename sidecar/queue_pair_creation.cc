// SPDX-License-Identifier: Apache-2.0
//
// QueuePairs' way from a request to a queue pair in its table.
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "sidecar/actual_charge.h"
#include "sidecar/create_failure.h"
#include "sidecar/queue_pairs.h"
#include "sidecar/send_operations.h"
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

ibv_qp_cap CapOf(const queue_memory::QueuePairRequest& request) {
  return {.max_send_wr = request.max_send_wr,
          .max_recv_wr = request.max_recv_wr,
          .max_send_sge = request.max_send_sge,
          .max_recv_sge = request.max_recv_sge,
          .max_inline_data = request.max_inline_data};
}

bool IsWantOfMemory(RefusalReason reason) {
  return reason == RefusalReason::kBudget ||
         reason == RefusalReason::kClassShare;
}

bool IsZero(const ibv_qp_cap& cap) {
  return cap.max_send_wr == 0 && cap.max_recv_wr == 0 &&
         cap.max_send_sge == 0 && cap.max_recv_sge == 0 &&
         cap.max_inline_data == 0;
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
      base::FormatCount(grant.predicted.total().total()));
  return refusal;
}

}  // namespace

QueuePairs::CreateResult QueuePairs::Create(const CreateRequest& wanted,
                                            std::optional<Refusal>* shrunk) {
  CreateRequest request = wanted;
  const ClassConfig* of =
      admission_.accounts().config().Find(request.class_name);
  if (of != nullptr && IsZero(request.cap)) {
    request.cap = of->cap;
    if (request.shared_receive_queue_id != 0)
      request.cap.max_recv_wr = request.cap.max_recv_sge = 0;
  }
  absl::StatusOr<std::string> client_name = clients_.NameOf(request.client_id);
  if (!client_name.ok()) return client_name.status();
  absl::StatusOr<std::shared_ptr<OpenedDevice>> opened =
      request.device->Opened();
  if (!opened.ok()) return opened.status();
  std::optional<Refusal> less;
  CreateResult result =
      Admit(request, *std::move(opened), *std::move(client_name), less);
  if (const Refusal* refusal = std::get_if<Refusal>(&result))
    counters_.admissions.Add("refused", RefusalReasonName(refusal->reason));
  else if (std::holds_alternative<std::shared_ptr<BrokeredQueuePair>>(result))
    counters_.admissions.Add(less ? "shrunk" : "granted",
                             less ? RefusalReasonName(less->reason) : "fits");
  if (shrunk != nullptr) *shrunk = std::move(less);
  return result;
}

QueuePairs::CreateResult QueuePairs::Admit(const CreateRequest& request,
                                           std::shared_ptr<OpenedDevice> opened,
                                           std::string client_name,
                                           std::optional<Refusal>& shrunk) {
  Making making{.facts = {.device = request.device,
                          .owner = admission_.accounts().AccountOf(
                              {.class_name = request.class_name.empty()
                                                 ? kDefaultClass
                                                 : request.class_name,
                               .client = std::move(client_name),
                               .client_id = request.client_id}),
                          .detached = request.detached},
                .shape = {.type = request.type, .send_ops = request.send_ops}};
  BrokeredQueuePair::Parts& parts = making.parts;
  parts.opened = std::move(opened);
  parts.live = LiveCount(parts.opened->live_queue_pairs(), making.live_before);
  const DeviceTraits traits = parts.opened->traits();
  making.shape.request =
      WithSendOps(traits.provider, traits.limits,
                  ModelRequest(request.type, request.cap), request.send_ops);
  if (request.shared_receive_queue_id != 0) {
    absl::StatusOr<SharedReceiveUse> use = UseOf(request);
    if (!use.ok()) return use.status();
    parts.receives = *std::move(use);
    making.facts.shared_receive_queue_id = request.shared_receive_queue_id;
    making.shape.request.uses_srq = true;
  }
  if (std::optional<CreateResult> refused = AdmitWithRoom(request, making))
    return *std::move(refused);
  making.shape.request = making.grant->request;
  shrunk = making.grant->shrunk;
  return Allocate(request, std::move(making));
}

absl::StatusOr<SharedReceiveUse> QueuePairs::UseOf(
    const CreateRequest& request) const {
  if (request.detached)
    return absl::InvalidArgumentError(
        "a detached queue pair outlives its client, but a shared receive queue "
        "does not: leave shared_receive_queue_id or detached out");
  if (request.cap.max_recv_wr != 0 || request.cap.max_recv_sge != 0)
    return absl::InvalidArgumentError(
        "cap.max_recv_wr and max_recv_sge must be 0 beside "
        "shared_receive_queue_id: the queue pair has no receive queue of its "
        "own");
  PURSER_ASSIGN_OR_RETURN(
      SharedReceiveUse use,
      shared_receive_queues_.Use(request.client_id,
                                 request.shared_receive_queue_id));
  if (use.queue()->facts().device != request.device)
    return absl::InvalidArgumentError(fmt::format(
        "shared receive queue {} is on {}, the queue pair is to be on {}",
        request.shared_receive_queue_id, use.queue()->facts().device->name(),
        request.device->name()));
  return use;
}

std::optional<QueuePairs::CreateResult> QueuePairs::AdmitWithRoom(
    const CreateRequest& request, Making& making) {
  const std::shared_ptr<OpenedDevice>& opened = making.parts.opened;
  const DeviceTraits traits = opened->traits();
  queue_memory::QueuePairRequest least =
      ModelRequest(request.type, request.least.value_or(request.cap));
  if (least.max_send_wr == 0) least.max_send_wr = request.cap.max_send_wr;
  if (least.max_recv_wr == 0) least.max_recv_wr = request.cap.max_recv_wr;
  SharedReceives receives;
  if (const auto& queue = making.parts.receives.queue(); queue != nullptr)
    receives = {.id = queue->facts().id, .slots = queue->facts().slots};

  // A detached one outlives what its client's others share.
  const bool own =
      request.detached || request.completions == CompletionOffer::Kind::kOwn;
  std::shared_ptr<CompletionQueueSet> set;
  std::unique_lock<std::mutex> hold;
  if (!own) {
    set = completion_queues_.SetOf(
        {.owner = making.facts.owner,
         .name = request.completion_queue,
         .device = std::make_shared<const DeviceTraits>(traits)},
        *opened);
    hold = set->Hold();
  }
  std::optional<Refusal> first;
  for (bool may_grow = true;; may_grow = false) {
    const CompletionOffer offer =
        own ? CompletionOffer{.extra_slots = receives.slots}
            : set->Offer(request.completions, receives, may_grow);
    std::variant<Grant, Refusal> admitted =
        admission_.AdmitAtLeast(traits, making.shape.request, least,
                                making.live_before, *making.facts.owner, offer);
    if (Refusal* refusal = std::get_if<Refusal>(&admitted)) {
      if (first) return CreateResult(*std::move(first));
      // A further one may cost less than the growth of one that is there.
      if (!may_grow || offer.kind != CompletionOffer::Kind::kShared ||
          offer.shared.empty() || !IsWantOfMemory(refusal->reason))
        return CreateResult(std::move(*refusal));
      first = std::move(*refusal);
      continue;
    }
    making.grant = std::get<Grant>(std::move(admitted));
    absl::StatusOr<CompletionRoom> room =
        making.grant->completion.kind == CompletionChoice::Kind::kOwn
            ? completion_queues_.OwnRoom(opened, receives, *making.grant)
            : set->Room(opened, receives, *making.grant);
    if (room.ok()) {
      making.parts.room = *std::move(room);
      return std::nullopt;
    }
    // What cannot be grown is done without.
    if (making.grant->completion.kind != CompletionChoice::Kind::kExisting)
      return CreateFailed("cq", room.status(), *making.grant, *opened);
    making.grant.reset();
  }
}

QueuePairs::CreateResult QueuePairs::Allocate(const CreateRequest& request,
                                              Making making) {
  BrokeredQueuePair::Parts& parts = making.parts;
  BrokeredQueuePair::Facts& facts = making.facts;
  Grant& grant = *making.grant;
  const std::shared_ptr<OpenedDevice> opened = parts.opened;
  parts.events = std::make_shared<QueuePairEvents>();
  ibv_cq* const cq = parts.room.queue()->cq();
  ibv_qp_init_attr init{.qp_context = parts.events.get(),
                        .send_cq = cq,
                        .recv_cq = cq,
                        .cap = CapOf(grant.request),
                        .qp_type = request.type};
  if (const auto& receives = parts.receives.queue(); receives != nullptr) {
    init.srq = receives->srq();
    if (init.srq == nullptr) return LostMeanwhile(opened->name());
  }
  absl::StatusOr<rdma::QueuePair> qp = rdma::CreateQp(
      opened->verbs(), opened->pd(), init, CreateFlags(grant.request));
  if (!qp.ok()) return CreateFailed("qp", qp.status(), grant, *opened);
  parts.qp = *std::move(qp);

  const Actual actual =
      ActualCharge(grant, init.cap, parts.room.queue()->cqe());
  if (!actual.mismatch.empty()) {
    counters_.model_mismatches.Add(facts.device->name());
    base::LogWarn(
        "the memory model does not fit the device",
        {{"device", facts.device->name()}, {"mismatch", actual.mismatch}});
  }
  const bool fits =
      grant.lease.Commit(ToLedger(actual.queue_pair.total())) &&
      parts.room.Commit(ToLedger(actual.completion_queue.total()));
  parts.lease = std::move(grant.lease);
  facts.id = ++last_id_;
  facts.qp_num = parts.qp->qp_num;
  facts.completion_queue_id = parts.room.id();
  making.shape.cap = init.cap;
  making.shape.memory =
      parts.room.id() == 0 ? actual.memory : actual.queue_pair;
  facts.shape = shapes_.Intern(making.shape);
  TrafficShares shares = SharesOf(facts);
  auto queue_pair = std::make_shared<BrokeredQueuePair>(
      std::move(facts), std::move(parts), undestroyed_, counters_,
      std::move(shares));
  if (fits) return Publish(*opened, std::move(queue_pair));
  queue_pair->Destroy(absl::ResourceExhaustedError("outgrew its prediction"));
  return OutgrewPrediction(grant, actual);
}

TrafficShares QueuePairs::SharesOf(
    const BrokeredQueuePair::Facts& facts) const {
  const auto found = class_traffic_.find(facts.owner->class_name);
  return {clients_.TrafficOf(facts.owner->client_id),
          found == class_traffic_.end() ? nullptr : found->second};
}

QueuePairs::CreateResult QueuePairs::CreateFailed(const char* object,
                                                  const absl::Status& status,
                                                  const Grant& grant,
                                                  const OpenedDevice& opened) {
  if (opened.lost()) return LostMeanwhile(opened.name());
  return CreateFailure(object, status, grant.predicted, proc_root_, counters_);
}

QueuePairs::CreateResult QueuePairs::Publish(
    const OpenedDevice& opened, std::shared_ptr<BrokeredQueuePair> queue_pair) {
  std::unique_lock lock(mutex_);
  const bool live = clients_.IsLive(queue_pair->facts().owner->client_id);
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

}  // namespace purser::sidecar
