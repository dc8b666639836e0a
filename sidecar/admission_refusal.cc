// SPDX-License-Identifier: Apache-2.0
#include "sidecar/admission_refusal.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "queue_memory/fit.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr uint64_t kMiB = 1 << 20;

using base::FormatCount;
using queue_memory::Limit;

const char* UnitName(queue_memory::Provider provider, Limit limit) {
  switch (limit) {
    case Limit::kMaxInlineData:
    case Limit::kSendWqeSize:
    case Limit::kReceiveWqeSize:
      return " bytes";
    case Limit::kSendRingSize:
    case Limit::kReceiveRingSize:
      return provider == queue_memory::Provider::kIrdma ? " quanta"
                                                        : " basic blocks";
    default:
      return "";
  }
}

// What `bound` counts of a charge.
uint64_t Counted(const Bound& bound, queue_memory::Charge charge) {
  return bound.container_only ? charge.container : charge.total();
}

// "send ring 4,198,400 + receive ring 528,384 + …", as the bound counts.
std::string Parts(const Bound& bound, const queue_memory::QueueMemory& needed) {
  std::string parts =
      fmt::format("send ring {} + receive ring {} + completion queue {}",
                  FormatCount(Counted(bound, needed.send)),
                  FormatCount(Counted(bound, needed.receive)),
                  FormatCount(Counted(bound, needed.completion)));
  if (const uint64_t bytes = Counted(bound, needed.shared_receive); bytes > 0)
    parts += fmt::format(" + shared receive queue {}", FormatCount(bytes));
  return parts + fmt::format(" + arrays {} + overhead {}",
                             FormatCount(Counted(bound, needed.arrays)),
                             FormatCount(Counted(bound, needed.overhead)));
}

// How to make the bound larger by `shortfall` bytes.
std::string HowToRaise(const Bound& bound, uint64_t shortfall) {
  switch (bound.source) {
    case BudgetSource::kExplicit:
      return fmt::format("raise {} by {} bytes", bound.origin,
                         FormatCount(shortfall));
    case BudgetSource::kPlugin: {
      const uint64_t units = (shortfall + kMiB - 1) / kMiB;
      return fmt::format(
          "request {} more unit{} of rdma/wqe-mib for the sidecar's container",
          FormatCount(units), units == 1 ? "" : "s");
    }
    case BudgetSource::kCgroup:
      return fmt::format(
          "raise the memory limit of the sidecar's container by {} bytes",
          FormatCount(static_cast<uint64_t>(
              std::ceil(static_cast<double>(shortfall) / bound.fraction))));
    case BudgetSource::kMemlock:
      return fmt::format(
          "give the sidecar's container the capability IPC_LOCK, or raise "
          "RLIMIT_MEMLOCK in the container runtime by {} bytes",
          FormatCount(shortfall));
  }
  return "raise the budget";
}

std::string Remedy(const Bound& bound, uint64_t shortfall, uint64_t held,
                   const queue_memory::QueuePairRequest& asked,
                   uint32_t largest_max_send_wr) {
  std::string remedy = HowToRaise(bound, shortfall);
  if (largest_max_send_wr > 0) {
    remedy +=
        fmt::format(", or ask for max_send_wr <= {}", largest_max_send_wr);
  } else if (asked.max_send_wr > 0) {
    remedy += ", or ask for less of the rest (max_recv_wr, SGEs, inline data)";
  } else {
    remedy += asked.max_recv_wr > 0 ? ", or ask for a smaller max_recv_wr"
                                    : ", or ask for a smaller max_wr";
  }
  if (held > 0) remedy += ", or destroy queue pairs that are not needed";
  return remedy;
}

// "RC, UC or UD": of those that this sidecar makes.
std::string TypesOf(queue_memory::Provider provider) {
  std::vector<std::string> types;
  for (const auto type :
       {queue_memory::QueuePairType::kRc, queue_memory::QueuePairType::kUc,
        queue_memory::QueuePairType::kUd})
    if (queue_memory::TraitsOf(provider).Has(type))
      types.emplace_back(queue_memory::QueuePairTypeName(type));
  std::string text;
  for (size_t i = 0; i < types.size(); ++i)
    text += (i == 0 ? "" : i + 1 < types.size() ? ", " : " or ") + types[i];
  return text;
}

std::string ProviderRemedy(const DeviceTraits& device,
                           const queue_memory::QueuePairRequest& request,
                           const queue_memory::Refusal& by) {
  switch (by.limit) {
    case Limit::kQueuePairType:
      return "ask for " + TypesOf(device.provider);
    case Limit::kSharedReceiveQueue:
      return "ask for a receive queue of its own";
    case Limit::kSendWqeSize:
      return "ask for fewer send SGEs or less inline data";
    case Limit::kReceiveWqeSize:
      return "ask for fewer receive SGEs";
    case Limit::kSendRingSize:
      if (const uint32_t largest = queue_memory::LargestSendWr(
              device.provider, device.limits, request, {});
          largest > 0)
        return fmt::format("ask for max_send_wr <= {}", largest);
      return "ask for fewer send SGEs or less inline data";
    case Limit::kReceiveRingSize:
      return "ask for a smaller max_recv_wr or fewer receive SGEs";
    default:
      return queue_memory::IsLeast(by.limit)
                 ? fmt::format("ask for at least {}", by.allowed)
                 : fmt::format("ask for {} <= {}",
                               queue_memory::LimitName(by.limit), by.allowed);
  }
}

std::string ProviderFault(const DeviceTraits& device,
                          const queue_memory::Refusal& by) {
  const char* provider = queue_memory::ProviderName(device.provider);
  const char* limit = queue_memory::LimitName(by.limit);
  if (by.limit == Limit::kQueuePairType)
    return fmt::format("the provider {} has no queue pairs of this type",
                       provider);
  if (by.limit == Limit::kSharedReceiveQueue)
    return fmt::format("the provider {} has no shared receive queues",
                       provider);
  if (queue_memory::IsLeast(by.limit))
    return fmt::format("{} is below the {} of {} that the provider {} takes",
                       FormatCount(by.asked), limit, FormatCount(by.allowed),
                       provider);
  return fmt::format("{} {}{} is more than the {} that the provider {} takes",
                     limit, FormatCount(by.asked),
                     UnitName(device.provider, by.limit),
                     FormatCount(by.allowed), provider);
}

}  // namespace

std::string Describe(const DeviceTraits& device,
                     const queue_memory::QueuePairRequest& request) {
  std::string text = fmt::format("queue pair {} {}/{} send, {}/{} receive",
                                 queue_memory::QueuePairTypeName(request.type),
                                 request.max_send_wr, request.max_send_sge,
                                 request.max_recv_wr, request.max_recv_sge);
  if (request.max_inline_data > 0)
    text += fmt::format(", {} bytes inline", request.max_inline_data);
  return text + " on " + device.name;
}

Refusal InvalidRequest(const std::string& what, std::string_view fault,
                       std::string remedy) {
  Refusal refusal;
  refusal.reason = RefusalReason::kInvalid;
  refusal.message = fmt::format("{}: {}; {}", what, fault, remedy);
  refusal.remedy = std::move(remedy);
  return refusal;
}

Refusal OverDeviceLimit(const std::string& what, std::string_view field,
                        uint64_t asked, std::string_view limit,
                        uint64_t allowed, std::string remedy) {
  Refusal refusal;
  refusal.reason = RefusalReason::kDeviceLimit;
  refusal.limit = std::string(limit);
  refusal.limit_value = allowed;
  refusal.asked_value = asked;
  refusal.message = fmt::format(
      "{}: {} {} is more than the device's {} of {}; {}", what, field,
      FormatCount(asked), limit, FormatCount(allowed), remedy);
  refusal.remedy = std::move(remedy);
  return refusal;
}

Refusal OverProviderLimit(const std::string& what, const DeviceTraits& device,
                          const queue_memory::QueuePairRequest& request,
                          const queue_memory::Refusal& by) {
  Refusal refusal;
  refusal.reason = RefusalReason::kDeviceLimit;
  refusal.limit = queue_memory::LimitName(by.limit);
  refusal.limit_value = by.allowed;
  refusal.asked_value = by.asked;
  refusal.remedy = ProviderRemedy(device, request, by);
  refusal.message = fmt::format("{}: {}; {}", what, ProviderFault(device, by),
                                refusal.remedy);
  return refusal;
}

Refusal UnknownLeases(const std::string& what,
                      const ledger::ReserveResult& result) {
  Refusal refusal;
  refusal.reason = RefusalReason::kBudget;
  refusal.needed_bytes = result.needed;
  refusal.budget_bytes = result.bound;
  refusal.limit = "ledger";
  refusal.remedy =
      "look at the sidecar's log: restart the processes of the pod that have "
      "queue pairs of their own, or make room in the shared volume";
  refusal.message = fmt::format(
      "{}: what is left of {} bytes is not known, since the ledger file was "
      "damaged or cannot be written; {}",
      what, FormatCount(result.bound), refusal.remedy);
  return refusal;
}

Refusal OverQueuePairCount(const std::string& what, const Budget& budget,
                           const ledger::ReserveResult& result) {
  Refusal refusal;
  refusal.reason = RefusalReason::kQueuePairCount;
  refusal.limit =
      budget.queue_pairs() ? budget.queue_pairs()->origin : "queue pairs";
  refusal.limit_value = result.bound;
  refusal.asked_value = result.held + 1;
  refusal.remedy =
      "destroy queue pairs that are not needed, or request more units of "
      "rdma/qp for the sidecar's container";
  refusal.message = fmt::format(
      "{}: it would be queue pair number {} of the {} that this container was "
      "allotted ({}); {}",
      what, FormatCount(refusal.asked_value), FormatCount(result.bound),
      refusal.limit, refusal.remedy);
  return refusal;
}

Refusal UnderPressure(const std::string& what, PressureScope scope,
                      const Pressure& pressure, uint64_t bytes) {
  const bool container = scope == PressureScope::kContainer;
  Refusal refusal;
  refusal.reason = RefusalReason::kPressure;
  refusal.needed_bytes = bytes;
  refusal.limit = fmt::format("{} memory: {}", PressureScopeName(scope),
                              PressureStateName(pressure.state));
  refusal.remedy = fmt::format(
      "try again when memory is free: {}",
      container ? "the sidecar's container needs less, or a higher memory limit"
                : "other pods of the node, or the node itself, need less");
  refusal.message = fmt::format(
      "{} needs {} bytes that the {} pays, whose memory is {}: {}; {}", what,
      FormatCount(bytes), container ? "container" : "node",
      PressureStateName(pressure.state), pressure.why, refusal.remedy);
  return refusal;
}

Refusal OverShare(const std::string& what, const Owner& owner,
                  const ShareRefusal& share, uint32_t largest_max_send_wr) {
  using Kind = ShareRefusal::Kind;
  Refusal refusal;
  refusal.reason = RefusalReason::kClassShare;
  refusal.needed_bytes = share.needed;
  refusal.used_bytes = share.used;
  refusal.budget_bytes = share.share;
  refusal.largest_max_send_wr = largest_max_send_wr;
  refusal.limit = "class " + owner.class_name;
  std::string why;
  if (share.kind == Kind::kPromised) {
    why = fmt::format("the rest, {} bytes, is promised to {}",
                      FormatCount(share.promised), share.promised_to);
  } else if (share.kind == Kind::kMaxShare) {
    why = fmt::format("the class may have {} bytes at most (maxShare)",
                      FormatCount(share.share));
  } else {
    why = fmt::format(
        "above its fair share of {} bytes the class gets at most half of what "
        "is left",
        FormatCount(share.share));
  }
  refusal.remedy =
      largest_max_send_wr > 0
          ? fmt::format(
                "ask for max_send_wr <= {}, or destroy queue pairs of "
                "class {} that are not needed",
                largest_max_send_wr, owner.class_name)
          : fmt::format(
                "destroy queue pairs of class {} that are not needed, "
                "or give it a larger share in the sidecar's config",
                owner.class_name);
  refusal.message = fmt::format(
      "{} needs {} bytes, and class {}, which has {} in use, may take {} now: "
      "{}; {}",
      what, FormatCount(share.needed), owner.class_name,
      FormatCount(share.used), FormatCount(share.allowed), why, refusal.remedy);
  return refusal;
}

Refusal OverBudget(const std::string& what,
                   const queue_memory::QueuePairRequest& request,
                   const queue_memory::QueueMemory& needed, const Bound& bound,
                   const ledger::ReserveResult& result,
                   uint32_t largest_max_send_wr) {
  const uint64_t left =
      result.bound > result.held ? result.bound - result.held : 0;
  Refusal refusal;
  refusal.reason = RefusalReason::kBudget;
  refusal.needed = needed;
  refusal.needed_bytes = result.needed;
  refusal.used_bytes = result.held;
  refusal.budget_bytes = result.bound;
  refusal.bound = bound.source;
  refusal.largest_max_send_wr = largest_max_send_wr;
  refusal.remedy = Remedy(bound, result.needed - left, result.held, request,
                          largest_max_send_wr);

  std::string fits;
  if (largest_max_send_wr > 0) {
    fits = fmt::format("the largest max_send_wr that fits is {}",
                       largest_max_send_wr);
  } else if (request.max_send_wr > 0) {
    fits = "no max_send_wr fits with all else as asked";
  } else {
    fits = "it has no send queue to shrink";
  }
  refusal.message = fmt::format(
      "{} needs {} {}bytes ({}); {} of {} bytes are in use (bound: {}, {}), {} "
      "left; {}",
      what, FormatCount(result.needed),
      bound.container_only ? "container-charged " : "", Parts(bound, needed),
      FormatCount(result.held), FormatCount(result.bound),
      BudgetSourceName(bound.source), bound.origin, FormatCount(left), fits);
  return refusal;
}

}  // namespace purser::sidecar
