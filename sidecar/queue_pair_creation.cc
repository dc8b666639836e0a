// SPDX-License-Identifier: Apache-2.0
//
// QueuePairs' way from a request to a queue pair in its table.
#include <cerrno>
#include <memory>
#include <utility>

#include "base/logging.h"
#include "base/quantity.h"
#include "sidecar/memlock_hint.h"
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

bool IsZero(const ibv_qp_cap& cap) {
  return cap.max_send_wr == 0 && cap.max_recv_wr == 0 &&
         cap.max_send_sge == 0 && cap.max_recv_sge == 0 &&
         cap.max_inline_data == 0;
}

// Rings that the process itself allocates are pinned, so memlock bounds them;
// the kernel's are not.
bool PinsRings(const queue_memory::QueueMemory& memory) {
  return (memory.send + memory.receive + memory.completion).container > 0;
}

absl::Status LostMeanwhile(const std::string& device) {
  return absl::UnavailableError(
      fmt::format("device {} was lost meanwhile", device));
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

QueuePairs::CreateResult QueuePairs::Create(const CreateRequest& wanted,
                                            std::optional<Refusal>* shrunk) {
  CreateRequest request = wanted;
  const ClassConfig* of =
      admission_.accounts().config().Find(request.class_name);
  if (of != nullptr && IsZero(request.cap)) request.cap = of->cap;
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
  Owner owner{.class_name = request.class_name, .client = client_name};
  BrokeredQueuePair::Facts facts{.device = request.device,
                                 .owner = request.client_id,
                                 .client_name = std::move(client_name),
                                 .detached = request.detached,
                                 .class_name = request.class_name.empty()
                                                   ? kDefaultClass
                                                   : request.class_name,
                                 .type = request.type,
                                 .send_ops = request.send_ops};
  BrokeredQueuePair::Parts parts;
  parts.opened = std::move(opened);
  const DeviceTraits traits = parts.opened->traits();
  facts.request =
      WithSendOps(traits.provider, traits.limits,
                  ModelRequest(request.type, request.cap), request.send_ops);
  parts.live = LiveCount(parts.opened->live_queue_pairs());
  queue_memory::QueuePairRequest least =
      ModelRequest(request.type, request.least.value_or(request.cap));
  if (least.max_send_wr == 0) least.max_send_wr = request.cap.max_send_wr;
  if (least.max_recv_wr == 0) least.max_recv_wr = request.cap.max_recv_wr;
  std::variant<Grant, Refusal> admitted = admission_.AdmitAtLeast(
      traits, facts.request, least, parts.live.before(), owner);
  if (Refusal* refusal = std::get_if<Refusal>(&admitted))
    return std::move(*refusal);
  facts.request = std::get<Grant>(admitted).request;
  shrunk = std::get<Grant>(admitted).shrunk;
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
                        .cap = CapOf(grant.request),
                        .qp_type = request.type};
  absl::StatusOr<rdma::QueuePair> qp =
      rdma::CreateQp(verbs, opened->pd(), init, CreateFlags(grant.request));
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

}  // namespace purser::sidecar
