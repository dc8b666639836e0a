// SPDX-License-Identifier: Apache-2.0
#include "sidecar/admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ledger/purser_ledger_layout.h"
#include "queue_memory/fit.h"
#include "sidecar/admission_refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using queue_memory::QueuePairRequest;

uint64_t LimitOf(const Bound* bound) {
  return bound == nullptr ? ledger::kUnlimited : bound->limit_bytes;
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
    case RefusalReason::kClassShare:
      return "class_share";
  }
  return "unknown";
}

ledger::Charge ToLedger(queue_memory::Charge charge) {
  return {.container = charge.container, .node = charge.node};
}

Lease::Lease(std::shared_ptr<Accounts> accounts, Owner owner,
             ledger::Charge charge)
    : accounts_(std::move(accounts)),
      owner_(std::move(owner)),
      charge_(charge) {}

Lease::Lease(Lease&& other) noexcept
    : accounts_(std::exchange(other.accounts_, nullptr)),
      owner_(std::move(other.owner_)),
      charge_(std::exchange(other.charge_, {})) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  Lease incoming(std::move(other));
  std::swap(accounts_, incoming.accounts_);
  std::swap(owner_, incoming.owner_);
  std::swap(charge_, incoming.charge_);
  return *this;
}

Lease::~Lease() {
  if (accounts_ != nullptr) accounts_->Release(owner_, charge_);
}

bool Lease::Commit(ledger::Charge actual) {
  if (accounts_ == nullptr || !accounts_->Commit(owner_, charge_, actual))
    return false;
  charge_ = actual;
  return true;
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

std::variant<Grant, Refusal> Admission::Admit(const DeviceTraits& device,
                                              const QueuePairRequest& request,
                                              uint64_t live_queue_pairs,
                                              const Owner& owner) const {
  const std::string what = Describe(device, request);
  const ClassConfig* of = accounts_->config().Find(owner.class_name);
  if (of == nullptr)
    return InvalidRequest(
        what, fmt::format("there is no class \"{}\"", owner.class_name),
        "ask for one of " + accounts_->config().Names());
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
  if (auto refusal = CheckPressure(what, charge, *of))
    return *std::move(refusal);
  const Owner account{.class_name = of->name, .client = owner.client};
  const Accounts::Result result = accounts_->Reserve(account, charge);
  if (!result.ledger.ok())
    return RefuseByBudget(device, request, needed.memory, result.ledger,
                          account);
  if (!result.ok())
    return OverShare(what, account, result.share,
                     LargestThatFits(device, request, account));
  return Grant{.lease = Lease(accounts_, account, charge),
               .predicted = needed.memory,
               .cqe = needed.cqe,
               .device = device,
               .request = request};
}

std::variant<Grant, Refusal> Admission::AdmitAtLeast(
    const DeviceTraits& device, const QueuePairRequest& request,
    const QueuePairRequest& least, uint64_t live_queue_pairs,
    const Owner& owner) const {
  std::variant<Grant, Refusal> wanted =
      Admit(device, request, live_queue_pairs, owner);
  Refusal* refusal = std::get_if<Refusal>(&wanted);
  if (refusal == nullptr || (refusal->reason != RefusalReason::kBudget &&
                             refusal->reason != RefusalReason::kClassShare))
    return wanted;
  const Owner account{
      .class_name = accounts_->config().Find(owner.class_name)->name,
      .client = owner.client};
  if (request.max_send_wr == 0)
    return AdmitReceives(device, request, least, live_queue_pairs, account,
                         std::move(*refusal));
  for (const uint32_t max_recv_wr : {request.max_recv_wr, least.max_recv_wr}) {
    QueuePairRequest smaller = request;
    smaller.max_recv_wr = max_recv_wr;
    // Others may take what is left in between.
    for (int tries = 0; tries < 3; ++tries) {
      smaller.max_send_wr = std::min(request.max_send_wr,
                                     LargestThatFits(device, smaller, account));
      if (smaller.max_send_wr < std::max(least.max_send_wr, 1u)) break;
      std::variant<Grant, Refusal> result =
          Admit(device, smaller, live_queue_pairs, owner);
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
    const DeviceTraits& device, const QueuePairRequest& request,
    const QueuePairRequest& least, uint64_t live_queue_pairs,
    const Owner& owner, Refusal refusal) const {
  const queue_memory::Headroom headroom = accounts_->HeadroomOf(owner);
  QueuePairRequest smaller = request;
  smaller.max_recv_wr = queue_memory::LargestThatFits(
      request.max_recv_wr, [&](uint32_t max_recv_wr) {
        QueuePairRequest tried = request;
        tried.max_recv_wr = max_recv_wr;
        const auto needed = queue_memory::QueuePairWithCompletionQueueMemory(
            device.provider, device.limits, tried);
        return !needed.memory.refusal &&
               queue_memory::Fits(needed.memory.total(), headroom);
      });
  if (smaller.max_recv_wr < std::max(least.max_recv_wr, 1u)) return refusal;
  std::variant<Grant, Refusal> result =
      Admit(device, smaller, live_queue_pairs, owner);
  if (Grant* grant = std::get_if<Grant>(&result))
    grant->shrunk = std::move(refusal);
  return result;
}

uint32_t Admission::LargestThatFits(const DeviceTraits& device,
                                    const QueuePairRequest& request,
                                    const Owner& owner) const {
  if (request.max_send_wr == 0) return 0;
  return queue_memory::LargestSendWr(device.provider, device.limits, request,
                                     accounts_->HeadroomOf(owner));
}

Refusal Admission::RefuseByBudget(const DeviceTraits& device,
                                  const QueuePairRequest& request,
                                  const queue_memory::QueueMemory& needed,
                                  const ledger::ReserveResult& result,
                                  const Owner& owner) const {
  const std::shared_ptr<const Budget> budget = this->budget();
  const bool unknown =
      result.held >= PURSER_LEDGER_MAX && result.needed < PURSER_LEDGER_MAX;
  if (result.refused_by == ledger::Bound::kLeases && !unknown)
    return OverQueuePairCount(Describe(device, request), *budget, result);
  if (unknown) return UnknownLeases(Describe(device, request), result);
  const bool by_total = result.refused_by == ledger::Bound::kTotal;
  const Bound* bound =
      by_total ? budget->total_bound() : budget->container_bound();
  // The budget changed since: the bound that refused is no more.
  const Bound none{.limit_bytes = result.bound,
                   .container_only = !by_total,
                   .origin = "the budget before"};
  return OverBudget(Describe(device, request), request, needed,
                    bound == nullptr ? none : *bound, result,
                    LargestThatFits(device, request, owner));
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
