// SPDX-License-Identifier: Apache-2.0
#include "sidecar/admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ledger/purser_ledger_layout.h"
#include "queue_memory/fit.h"
#include "sidecar/admission_checks.h"
#include "sidecar/admission_refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using queue_memory::QueuePairRequest;

uint64_t LimitOf(const Bound* bound) {
  return bound == nullptr ? ledger::kUnlimited : bound->limit_bytes;
}

}  // namespace

const char* RefusalReasonName(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kBudget:
      return "budget";
    case RefusalReason::kDeviceLimit:
      return "device_limit";
    case RefusalReason::kInvalid:
      return "invalid";
    case RefusalReason::kCreateFailed:
      return "create_failed";
    case RefusalReason::kQueuePairCount:
      return "qp_count";
    case RefusalReason::kPressure:
      return "pressure";
    case RefusalReason::kClassShare:
      return "class_share";
  }
  return "unknown";
}

ledger::Charge ToLedger(queue_memory::Charge charge) {
  return {.container = charge.container, .node = charge.node};
}

Admission::Admission(ledger::Ledger ledger, Budget budget,
                     ClassesConfig classes)
    : ledger_(ledger),
      accounts_(std::make_shared<Accounts>(ledger, std::move(classes))) {
  SetBudget(std::move(budget));
}

void Admission::SetBudget(Budget budget) {
  std::lock_guard lock(mutex_);
  ledger_.SetBounds(
      LimitOf(budget.total_bound()), LimitOf(budget.container_bound()),
      budget.queue_pairs() ? budget.queue_pairs()->limit : ledger::kUnlimited);
  budget_ = std::make_shared<const Budget>(std::move(budget));
}

std::shared_ptr<const Budget> Admission::budget() const {
  std::lock_guard lock(mutex_);
  return budget_;
}

uint64_t Admission::OvercommittedBytes() const {
  return sidecar::OvercommittedBytes(*budget(), ledger_.balance());
}

void Admission::SetPressure(PressureScope scope, Pressure pressure) {
  std::lock_guard lock(mutex_);
  pressure_[static_cast<size_t>(scope)] = std::move(pressure);
}

Pressure Admission::pressure(PressureScope scope) const {
  std::lock_guard lock(mutex_);
  return pressure_[static_cast<size_t>(scope)];
}

std::optional<Refusal> Admission::CheckPressure(const std::string& what,
                                                ledger::Charge charge,
                                                const ClassConfig& of) const {
  for (const auto& [scope, pays] :
       {std::pair(PressureScope::kContainer, charge.container),
        std::pair(PressureScope::kNode, charge.node)}) {
    const Pressure felt = pressure(scope);
    const PressureState bearable =
        of.core ? PressureState::kTight : PressureState::kNormal;
    if (pays > 0 && felt.state > bearable)
      return UnderPressure(what, scope, felt, pays);
  }
  return std::nullopt;
}

Admission::Needed Admission::NeededBy(const DeviceTraits& device,
                                      const QueuePairRequest& request,
                                      const CompletionOffer& offer) {
  Needed needed{.queue_pair = queue_memory::QueuePairMemory(
                    device.provider, device.limits, request)};
  needed.total = needed.queue_pair;
  if (needed.queue_pair.refusal) return needed;
  needed.completion =
      ChooseCompletionQueue(device.provider, device.limits,
                            uint64_t{needed.queue_pair.send_ring.slots} +
                                needed.queue_pair.receive_ring.slots,
                            offer);
  if (needed.completion.kind == CompletionChoice::Kind::kExisting)
    needed.total.completion += needed.completion.growth;
  else
    needed.total =
        queue_memory::Sum(needed.queue_pair, needed.completion.memory);
  return needed;
}

std::variant<Grant, Refusal> Admission::Admit(
    const DeviceTraits& device, const QueuePairRequest& request,
    uint64_t live_queue_pairs, const Owner& owner,
    const CompletionOffer& offer) const {
  const ClassConfig* of = accounts_->config().Find(owner.class_name);
  if (of == nullptr)
    return NoSuchClass(Describe(device, request), owner.class_name);
  const Owner account{of->name, owner.client, owner.client_id};
  return Admit({device, live_queue_pairs, account, offer}, request);
}

std::variant<Grant, Refusal> Admission::Admit(
    const Asked& asked, const QueuePairRequest& request) const {
  const DeviceTraits& device = asked.device;
  const std::string what = Describe(device, request);
  if (auto refusal = CheckSense(what, request)) return *std::move(refusal);
  if (auto refusal =
          CheckDeviceAttributes(what, device, request, asked.live_queue_pairs))
    return *std::move(refusal);
  const Needed needed = NeededBy(device, request, asked.offer);
  if (needed.total.refusal)
    return OverProviderLimit(what, device, request, needed.total.refusal);

  std::variant<Lease, Refusal> reserved = Reserve(
      {.what = what,
       .owner = asked.owner,
       .needed = needed.total,
       .request = request,
       .largest_send_wr = [&] { return LargestSendWr(asked, request); }});
  if (Refusal* refusal = std::get_if<Refusal>(&reserved))
    return std::move(*refusal);
  return Grant{.lease = std::get<Lease>(std::move(reserved)),
               .queue_pair = needed.queue_pair,
               .completion = needed.completion,
               .predicted = needed.total,
               .device = device,
               .request = request};
}

std::variant<SharedReceiveGrant, Refusal> Admission::AdmitSharedReceiveQueue(
    const DeviceTraits& device,
    const queue_memory::SharedReceiveQueueRequest& request,
    const Owner& owner) const {
  const std::string what =
      fmt::format("shared receive queue {}/{} on {}", request.max_wr,
                  request.max_sge, device.name);
  const ClassConfig* of = accounts_->config().Find(owner.class_name);
  if (of == nullptr) return NoSuchClass(what, owner.class_name);
  if (request.max_wr == 0 || request.max_sge == 0)
    return InvalidRequest(
        what, "max_wr or max_sge is 0, so no receive can carry data",
        "ask for at least one of each");
  const queue_memory::QueueMemory needed =
      queue_memory::SharedReceiveQueueMemory(device.provider, device.limits,
                                             request);
  if (needed.refusal)
    return OverProviderLimit(what, device, {}, needed.refusal);
  const Owner account{of->name, owner.client, owner.client_id};
  std::variant<Lease, Refusal> reserved =
      Reserve({.what = what,
               .owner = account,
               .needed = needed,
               .held = Held::kQueue,
               .largest_send_wr = [] { return 0; }});
  if (Refusal* refusal = std::get_if<Refusal>(&reserved))
    return std::move(*refusal);
  return SharedReceiveGrant{.lease = std::get<Lease>(std::move(reserved)),
                            .predicted = needed};
}

Refusal Admission::NoSuchClass(const std::string& what,
                               const std::string& name) const {
  return InvalidRequest(what, fmt::format("there is no class \"{}\"", name),
                        "ask for one of " + accounts_->config().Names());
}

std::variant<Lease, Refusal> Admission::Reserve(const Wanted& wanted) const {
  const ledger::Charge charge = ToLedger(wanted.needed.total());
  if (auto refusal =
          CheckPressure(wanted.what, charge,
                        *accounts_->config().Find(wanted.owner.class_name)))
    return *std::move(refusal);
  const Accounts::Result result =
      accounts_->Reserve(wanted.owner, charge, wanted.held);
  if (!result.ledger.ok()) return RefuseByBudget(wanted, result.ledger);
  if (!result.ok())
    return OverShare(wanted.what, wanted.owner, result.share,
                     wanted.largest_send_wr());
  return Lease(accounts_->AccountOf(wanted.owner), charge, wanted.held);
}

std::variant<Grant, Refusal> Admission::AdmitAtLeast(
    const DeviceTraits& device, const QueuePairRequest& request,
    const QueuePairRequest& least, uint64_t live_queue_pairs,
    const Owner& owner, const CompletionOffer& offer) const {
  std::variant<Grant, Refusal> wanted =
      Admit(device, request, live_queue_pairs, owner, offer);
  Refusal* refusal = std::get_if<Refusal>(&wanted);
  if (refusal == nullptr || (refusal->reason != RefusalReason::kBudget &&
                             refusal->reason != RefusalReason::kClassShare))
    return wanted;
  const Owner account{accounts_->config().Find(owner.class_name)->name,
                      owner.client, owner.client_id};
  const Asked asked{device, live_queue_pairs, account, offer};
  if (request.max_send_wr == 0)
    return AdmitReceives(asked, request, least, std::move(*refusal));
  for (const uint32_t max_recv_wr : {request.max_recv_wr, least.max_recv_wr}) {
    QueuePairRequest smaller = request;
    smaller.max_recv_wr = max_recv_wr;
    // Others may take what is left in between.
    for (int tries = 0; tries < 3; ++tries) {
      smaller.max_send_wr =
          std::min(request.max_send_wr, LargestSendWr(asked, smaller));
      if (smaller.max_send_wr < std::max(least.max_send_wr, 1u)) break;
      std::variant<Grant, Refusal> result = Admit(asked, smaller);
      Grant* grant = std::get_if<Grant>(&result);
      if (grant == nullptr) continue;
      // All of it, where others let go meanwhile.
      if (smaller.max_send_wr < request.max_send_wr ||
          smaller.max_recv_wr < request.max_recv_wr)
        grant->shrunk = std::move(*refusal);
      return result;
    }
  }
  return wanted;
}

std::variant<Grant, Refusal> Admission::AdmitReceives(
    const Asked& asked, const QueuePairRequest& request,
    const QueuePairRequest& least, Refusal refusal) const {
  QueuePairRequest smaller = request;
  smaller.max_recv_wr = LargestThatFits(
      asked, request, &QueuePairRequest::max_recv_wr, request.max_recv_wr);
  if (smaller.max_recv_wr < std::max(least.max_recv_wr, 1u)) return refusal;
  std::variant<Grant, Refusal> result = Admit(asked, smaller);
  if (Grant* grant = std::get_if<Grant>(&result))
    grant->shrunk = std::move(refusal);
  return result;
}

uint32_t Admission::LargestThatFits(const Asked& asked,
                                    const QueuePairRequest& request,
                                    uint32_t QueuePairRequest::*depth,
                                    uint32_t most) const {
  const queue_memory::Headroom headroom = accounts_->HeadroomOf(asked.owner);
  return queue_memory::LargestThatFits(most, [&](uint32_t value) {
    QueuePairRequest tried = request;
    tried.*depth = value;
    const Needed needed = NeededBy(asked.device, tried, asked.offer);
    return !needed.total.refusal &&
           queue_memory::Fits(needed.total.total(), headroom);
  });
}

uint32_t Admission::LargestSendWr(const Asked& asked,
                                  const QueuePairRequest& request) const {
  if (request.max_send_wr == 0) return 0;
  return LargestThatFits(asked, request, &QueuePairRequest::max_send_wr,
                         UINT32_MAX);
}

Refusal Admission::RefuseByBudget(const Wanted& wanted,
                                  const ledger::ReserveResult& result) const {
  const std::shared_ptr<const Budget> budget = this->budget();
  const bool unknown =
      result.held >= PURSER_LEDGER_MAX && result.needed < PURSER_LEDGER_MAX;
  if (result.refused_by == ledger::Bound::kLeases && !unknown)
    return OverQueuePairCount(wanted.what, *budget, result);
  if (unknown) return UnknownLeases(wanted.what, result);
  const bool by_total = result.refused_by == ledger::Bound::kTotal;
  const Bound* bound =
      by_total ? budget->total_bound() : budget->container_bound();
  // The budget changed since: the bound that refused is no more.
  const Bound none{.limit_bytes = result.bound,
                   .container_only = !by_total,
                   .origin = "the budget before"};
  return OverBudget(wanted.what, wanted.request, wanted.needed,
                    bound == nullptr ? none : *bound, result,
                    wanted.largest_send_wr());
}

}  // namespace purser::sidecar
