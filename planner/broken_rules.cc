// SPDX-License-Identifier: Apache-2.0
#include "planner/broken_rules.h"

#include "planner/refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::Limit;

constexpr const char* kNames[] = {"transport",       "max_qp_wr", "max_sge",
                                  "max_inline_data", "wqe_size",  "ring_size",
                                  "max_cqe",         "srq"};

Rule RuleOf(Limit limit) {
  switch (limit) {
    case Limit::kMaxSendWr:
    case Limit::kMaxRecvWr:
    case Limit::kLeastSendWr:
    case Limit::kLeastRecvWr:
      return Rule::kDepth;
    case Limit::kMaxSendSge:
    case Limit::kMaxRecvSge:
    case Limit::kLeastRecvSge:
      return Rule::kSge;
    case Limit::kMaxInlineData:
      return Rule::kInline;
    case Limit::kSendWqeSize:
    case Limit::kReceiveWqeSize:
      return Rule::kEntry;
    case Limit::kSendRingSize:
    case Limit::kReceiveRingSize:
      return Rule::kRing;
    case Limit::kMaxCqe:
      return Rule::kCqe;
    case Limit::kMaxSrqWr:
    case Limit::kMaxSrqSge:
    case Limit::kLeastSrqWr:
    case Limit::kSharedReceiveQueue:
      return Rule::kSharedReceives;
    default:
      return Rule::kTransport;
  }
}

// What is not there at all is told from what is only too large.
const char* ErrorOf(Limit limit) {
  return limit == Limit::kQueuePairType || limit == Limit::kSharedReceiveQueue
             ? "EOPNOTSUPP"
             : "EINVAL";
}

std::string Located(const Refusal& refusal) {
  return refusal.where.empty()
             ? refusal.text
             : fmt::format("{}: {}", refusal.where, refusal.text);
}

}  // namespace

BrokenRules::BrokenRules(const Workload& workload, const Plan& plan) {
  const Device& device = plan.device;
  for (size_t i = 0; i < workload.groups.size(); ++i) {
    const auto& first = plan.groups[i].each.refusal;
    if (!first) continue;
    for (const auto& refusal :
         AllRefusals(device, workload.groups[i].request, first).all)
      Note(refusal.limit,
           [&] { return RefusalOf(workload, i, device, refusal); });
  }
  for (size_t i = 0; i < plan.completion_queues.size(); ++i)
    if (const auto& refusal = plan.completion_queues[i].each.refusal)
      Note(refusal.limit, [&] {
        return RefusalOf(workload, workload.completion_queues[i], device,
                         refusal);
      });
  for (size_t i = 0; i < plan.shared_receive_queues.size(); ++i)
    if (const auto& refusal = plan.shared_receive_queues[i].each.refusal)
      Note(refusal.limit, [&] {
        return RefusalOf(workload, workload.shared_receive_queues[i], device,
                         refusal);
      });
}

Finding BrokenRules::Tell(Rule rule, const std::string& within) const {
  const auto& [first, error, count] = rules_[static_cast<size_t>(rule)];
  if (count == 0)
    return {Level::kOk, kNames[static_cast<size_t>(rule)], within, ""};
  return {
      Level::kFailure, kNames[static_cast<size_t>(rule)],
      count == 1 ? first : fmt::format("{} (and {} more)", first, count - 1),
      fmt::format("the device answers {}; ask for less, or plan by `purser "
                  "plan`",
                  error),
      error};
}

void BrokenRules::Note(Limit limit, absl::FunctionRef<Refusal()> describe) {
  auto& [first, error, count] = rules_[static_cast<size_t>(RuleOf(limit))];
  if (count++ != 0) return;
  first = Located(describe());
  error = ErrorOf(limit);
}

}  // namespace purser::planner
