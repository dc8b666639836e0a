// SPDX-License-Identifier: Apache-2.0
#include "sidecar/admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "queue_memory/fit.h"
#include "sidecar/admission_refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using queue_memory::QueuePairRequest;

uint64_t LimitOf(const Bound* bound) {
  return bound == nullptr ? ledger::kUnlimited : bound->limit_bytes;
}

uint64_t Left(uint64_t bound, uint64_t held) {
  return bound > held ? bound - held : 0;
}

// What verbs would take and no application can mean: zero is also what a field
// that was left out looks like.
std::optional<Refusal> CheckSense(const std::string& what,
                                  const QueuePairRequest& request) {
  if (request.max_send_wr == 0 && request.max_recv_wr == 0 && !request.uses_srq)
    return InvalidRequest(
        what,
        "max_send_wr and max_recv_wr are both 0, so nothing can be posted",
        "ask for at least one work request on one side");
  if (request.max_send_wr > 0 && request.max_send_sge == 0 &&
      request.max_inline_data == 0)
    return InvalidRequest(what, "max_send_sge is 0, so no send can carry data",
                          "ask for max_send_sge >= 1");
  if (request.max_recv_wr > 0 && request.max_recv_sge == 0 && !request.uses_srq)
    return InvalidRequest(what,
                          "max_recv_sge is 0, so no receive can carry data",
                          "ask for max_recv_sge >= 1");
  return std::nullopt;
}

// The limits that ibv_query_device names.
std::optional<Refusal> CheckDeviceAttributes(const std::string& what,
                                             const DeviceTraits& device,
                                             const QueuePairRequest& request,
                                             uint64_t live_queue_pairs) {
  const queue_memory::DeviceLimits& limits = device.limits;
  if (device.max_qp != 0 && live_queue_pairs >= device.max_qp)
    return OverDeviceLimit(
        what, "queue pair number", live_queue_pairs + 1, "max_qp",
        device.max_qp,
        "destroy queue pairs that are not needed, or use another device");

  struct Check {
    const char* field;
    uint64_t asked;
    const char* limit;
    uint32_t allowed;
  };
  const uint32_t recv_wr = request.uses_srq ? 0 : request.max_recv_wr;
  const uint32_t recv_sge = request.uses_srq ? 0 : request.max_recv_sge;
  for (const Check& check : {
           Check{"max_send_wr", request.max_send_wr, "max_qp_wr",
                 limits.max_qp_wr},
           Check{"max_recv_wr", recv_wr, "max_qp_wr", limits.max_qp_wr},
           Check{"max_send_sge", request.max_send_sge, "max_sge",
                 limits.max_sge},
           Check{"max_recv_sge", recv_sge, "max_sge", limits.max_sge},
       }) {
    if (check.allowed != 0 && check.asked > check.allowed)
      return OverDeviceLimit(
          what, check.field, check.asked, check.limit, check.allowed,
          fmt::format("ask for {} <= {}", check.field, check.allowed));
  }
  // Its one completion queue must take a completion of each.
  const uint64_t completions = uint64_t{request.max_send_wr} + recv_wr;
  if (limits.max_cqe != 0 && completions > limits.max_cqe)
    return OverDeviceLimit(
        what, "max_send_wr + max_recv_wr", completions, "max_cqe",
        limits.max_cqe,
        fmt::format("ask for max_send_wr + max_recv_wr <= {}", limits.max_cqe));
  return std::nullopt;
}

std::string MismatchOf(const Grant& grant, const ibv_qp_cap& cap, uint32_t cqe,
                       bool contradicted) {
  struct Check {
    const char* field;
    uint32_t asked, granted;
  };
  const QueuePairRequest& asked = grant.request;
  const bool sends = asked.max_send_wr > 0;
  const bool receives = asked.max_recv_wr > 0 && !asked.uses_srq;
  std::string list;
  for (const Check& check : {
           Check{"max_send_wr", asked.max_send_wr, cap.max_send_wr},
           Check{"max_send_sge", sends ? asked.max_send_sge : 0,
                 cap.max_send_sge},
           Check{"max_inline_data", sends ? asked.max_inline_data : 0,
                 cap.max_inline_data},
           Check{"max_recv_wr", receives ? asked.max_recv_wr : 0,
                 cap.max_recv_wr},
           Check{"max_recv_sge", receives ? asked.max_recv_sge : 0,
                 cap.max_recv_sge},
           Check{"cqe", grant.cqe, cqe},
       }) {
    if (check.granted < check.asked)
      list += fmt::format("; {} {} granted of {} asked", check.field,
                          check.granted, check.asked);
  }
  if (contradicted)
    list += fmt::format(
        "; written back {}/{} send, {}/{} receive, {} bytes inline, {} cqe do "
        "not fit the rings predicted",
        cap.max_send_wr, cap.max_send_sge, cap.max_recv_wr, cap.max_recv_sge,
        cap.max_inline_data, cqe);
  if (list.empty()) return list;
  return Describe(grant.device, asked) + ": " + list.substr(2);
}

// What would have had to be asked, where more was written back than predicted.
uint32_t Asked(uint32_t asked, uint32_t predicted, uint32_t written_back) {
  return written_back > predicted ? std::max(asked, written_back) : asked;
}

QueuePairRequest AtCapacities(const Grant& grant, const ibv_qp_cap& cap) {
  const queue_memory::QueueMemory& predicted = grant.predicted;
  QueuePairRequest request = grant.request;
  request.max_send_wr =
      Asked(request.max_send_wr, predicted.cap_send_wr, cap.max_send_wr);
  request.max_send_sge =
      Asked(request.max_send_sge, predicted.cap_send_sge, cap.max_send_sge);
  request.max_inline_data = Asked(
      request.max_inline_data, predicted.cap_inline_data, cap.max_inline_data);
  request.max_recv_wr =
      Asked(request.max_recv_wr, predicted.cap_recv_wr, cap.max_recv_wr);
  request.max_recv_sge =
      Asked(request.max_recv_sge, predicted.cap_recv_sge, cap.max_recv_sge);
  return request;
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
  }
  return "unknown";
}

ledger::Charge ToLedger(queue_memory::Charge charge) {
  return {.container = charge.container, .node = charge.node};
}

Lease::Lease(ledger::Ledger ledger, ledger::Charge charge)
    : ledger_(ledger), charge_(charge), held_(true) {}

Lease::Lease(Lease&& other) noexcept
    : ledger_(other.ledger_),
      charge_(std::exchange(other.charge_, {})),
      held_(std::exchange(other.held_, false)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  Lease incoming(std::move(other));
  std::swap(ledger_, incoming.ledger_);
  std::swap(charge_, incoming.charge_);
  std::swap(held_, incoming.held_);
  return *this;
}

Lease::~Lease() {
  if (held_) ledger_.Release(charge_);
}

bool Lease::Commit(ledger::Charge actual) {
  if (!held_ || !ledger_.Commit(charge_, actual).ok()) return false;
  charge_ = actual;
  return true;
}

Admission::Admission(ledger::Ledger ledger, Budget budget) : ledger_(ledger) {
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

std::variant<Grant, Refusal> Admission::Admit(const DeviceTraits& device,
                                              const QueuePairRequest& request,
                                              uint64_t live_queue_pairs) const {
  const std::string what = Describe(device, request);
  if (auto refusal = CheckSense(what, request)) return *std::move(refusal);
  if (auto refusal =
          CheckDeviceAttributes(what, device, request, live_queue_pairs))
    return *std::move(refusal);
  const queue_memory::QueuePairWithCompletionQueue needed =
      queue_memory::QueuePairWithCompletionQueueMemory(device.provider,
                                                       device.limits, request);
  if (needed.memory.refusal)
    return OverProviderLimit(what, device, request, needed.memory.refusal);

  const ledger::Charge charge = ToLedger(needed.memory.total());
  for (const auto& [scope, pays] :
       {std::pair(PressureScope::kContainer, charge.container),
        std::pair(PressureScope::kNode, charge.node)}) {
    const Pressure felt = pressure(scope);
    if (pays > 0 && felt.state != PressureState::kNormal)
      return UnderPressure(what, scope, felt, pays);
  }
  ledger::Ledger ledger = ledger_;
  const ledger::ReserveResult result = ledger.Reserve(charge);
  if (!result.ok())
    return RefuseByBudget(device, request, needed.memory, result);
  return Grant{.lease = Lease(ledger, charge),
               .predicted = needed.memory,
               .cqe = needed.cqe,
               .device = device,
               .request = request};
}

Refusal Admission::RefuseByBudget(const DeviceTraits& device,
                                  const QueuePairRequest& request,
                                  const queue_memory::QueueMemory& needed,
                                  const ledger::ReserveResult& result) const {
  const std::shared_ptr<const Budget> budget = this->budget();
  if (result.refused_by == ledger::Bound::kLeases)
    return OverQueuePairCount(Describe(device, request), *budget, result);
  const ledger::Balance balance = ledger_.balance();
  queue_memory::Headroom headroom = {
      .total = Left(balance.total_bound, balance.held.total()),
      .container = Left(balance.container_bound, balance.held.container)};
  const bool by_total = result.refused_by == ledger::Bound::kTotal;
  (by_total ? headroom.total : headroom.container) =
      Left(result.bound, result.held);
  const uint32_t largest =
      request.max_send_wr == 0
          ? 0
          : queue_memory::LargestSendWr(device.provider, device.limits, request,
                                        headroom);
  const Bound* bound =
      by_total ? budget->total_bound() : budget->container_bound();
  // The budget changed since: the bound that refused is no more.
  const Bound none{.limit_bytes = result.bound,
                   .container_only = !by_total,
                   .origin = "the budget before"};
  return OverBudget(Describe(device, request), request, needed,
                    bound == nullptr ? none : *bound, result, largest);
}

Actual ActualCharge(const Grant& grant, const ibv_qp_cap& cap, uint32_t cqe) {
  Actual actual{.memory = grant.predicted};
  // Capacities written back may exceed the limits on asking.
  queue_memory::DeviceLimits limits = grant.device.limits;
  limits.max_qp_wr = limits.max_sge = limits.max_inline_data = UINT32_MAX;
  limits.max_cqe = UINT32_MAX;
  const queue_memory::QueueMemory at_capacities = queue_memory::Sum(
      queue_memory::QueuePairMemory(grant.device.provider, limits,
                                    AtCapacities(grant, cap)),
      queue_memory::CompletionQueueMemory(
          grant.device.provider, limits,
          Asked(grant.cqe, grant.predicted.cap_cqe, cqe)));
  const bool more =
      at_capacities.total().total() > grant.predicted.total().total();
  if (more) actual.memory = at_capacities;
  actual.charge = ToLedger(actual.memory.total());
  // An estimate predicts no capacities that could be contradicted.
  const bool contradicted =
      (more || at_capacities.refusal) &&
      grant.predicted.exactness == queue_memory::Exactness::kExact;
  actual.mismatch = MismatchOf(grant, cap, cqe, contradicted);
  return actual;
}

}  // namespace purser::sidecar
