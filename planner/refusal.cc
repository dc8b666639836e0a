// SPDX-License-Identifier: Apache-2.0
#include "planner/refusal.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/quantity.h"
#include "planner/completion_room.h"
#include "planner/send_operations.h"
#include "queue_memory/fit.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::Argument;
using queue_memory::Limit;
using queue_memory::QueuePairRequest;
using queue_memory::QueuePairType;

// Which of a group's figures is to be changed; none for its type.
std::optional<Argument> ArgumentOf(const QueuePairRequest& request,
                                   Limit limit) {
  switch (limit) {
    case Limit::kMaxSendWr:
    case Limit::kLeastSendWr:
    case Limit::kSendRingSize:
    case Limit::kMaxCqe:
      return Argument::kMaxSendWr;
    case Limit::kSendWqeSize:
      return request.max_inline_data > 16 * request.max_send_sge
                 ? Argument::kMaxInlineData
                 : Argument::kMaxSendSge;
    case Limit::kMaxSendSge:
      return Argument::kMaxSendSge;
    case Limit::kMaxInlineData:
      return Argument::kMaxInlineData;
    case Limit::kMaxRecvWr:
    case Limit::kLeastRecvWr:
    case Limit::kReceiveRingSize:
      return Argument::kMaxRecvWr;
    case Limit::kMaxRecvSge:
    case Limit::kLeastRecvSge:
    case Limit::kReceiveWqeSize:
      return Argument::kMaxRecvSge;
    default:
      return std::nullopt;
  }
}

constexpr QueuePairType kTypes[] = {
    QueuePairType::kRc,      QueuePairType::kUc,        QueuePairType::kUd,
    QueuePairType::kXrcSend, QueuePairType::kRawPacket, QueuePairType::kDci,
    QueuePairType::kSrd};

std::string TypesOf(const Device& device) {
  std::vector<std::string> names;
  for (const auto type : kTypes)
    if (queue_memory::TraitsOf(device.provider).Has(type))
      names.push_back(TypeName(type));
  return fmt::format("{}", fmt::join(names, ", "));
}

// The largest value of the argument that the device takes, all else as asked.
uint32_t Largest(const Device& device, const QueuePairRequest& request,
                 Argument argument) {
  return queue_memory::LargestThatFits(kMostDepth, [&](uint32_t value) {
    return !queue_memory::QueuePairMemory(
                device.provider, device.limits,
                queue_memory::With(request, argument, value))
                .refusal;
  });
}

// Up to what a completion queue of its own has room, where that is less.
std::string OwnRoom(const Device& device, const Group& group, Argument argument,
                    uint32_t largest) {
  if (argument != Argument::kMaxSendWr && argument != Argument::kMaxRecvWr)
    return "";
  const uint32_t held = queue_memory::LargestThatFits(largest, [&](uint32_t n) {
    return HasRoom(device, group,
                   queue_memory::With(group.request, argument, n));
  });
  return held == largest || held == 0
             ? ""
             : fmt::format(" ({} with room for all its completions)", held);
}

std::string Advice(const Device& device, const Group& group, Limit limit) {
  const std::optional<Argument> argument = ArgumentOf(group.request, limit);
  if (!argument.has_value() || queue_memory::IsLeast(limit)) return "";
  const uint32_t largest = Largest(device, group.request, *argument);
  if (largest == 0) return "";
  return fmt::format(
      "; the largest {} that it takes is {}{}, all else as asked",
      queue_memory::ArgumentName(*argument), largest,
      OwnRoom(device, group, *argument, largest));
}

// Bytes of what a limit of rings counts: basic blocks, quanta.
uint64_t RingUnit(const Device& device) {
  return device.provider == queue_memory::Provider::kMlx5 ? 64 : 32;
}

std::string Sentence(const Device& device,
                     const queue_memory::Refusal& refusal) {
  const auto& [limit, asked, allowed] = refusal;
  switch (limit) {
    case Limit::kQueuePairType:
      return fmt::format("{} has no queue pairs of that type; it has {}",
                         device.name, TypesOf(device));
    case Limit::kSharedReceiveQueue:
      return fmt::format("{} has no shared receive queues", device.name);
    case Limit::kSendWqeSize:
    case Limit::kReceiveWqeSize:
      return fmt::format(
          "an entry would have {} bytes, {} takes {}: fewer SGEs, or less "
          "inline data",
          asked, device.name, allowed);
    case Limit::kSendRingSize:
    case Limit::kReceiveRingSize:
      return fmt::format(
          "the {} ring would be {} (depth x entry, rounded up), {} takes {}",
          limit == Limit::kSendRingSize ? "send" : "receive",
          base::FormatBytes(asked * RingUnit(device)), device.name,
          base::FormatBytes(allowed * RingUnit(device)));
    default:
      break;
  }
  if (queue_memory::IsLeast(limit))
    return fmt::format("{} of {} is {}, not {}", queue_memory::LimitName(limit),
                       device.name, allowed, asked);
  return fmt::format("{} is {}, {} takes {}", queue_memory::LimitName(limit),
                     asked, device.name, allowed);
}

// Changes what `refusal` is about to what the device takes; false where there
// is no such.
bool Meet(const Device& device, const queue_memory::Refusal& refusal,
          QueuePairRequest* request) {
  const auto& traits = queue_memory::TraitsOf(device.provider);
  if (refusal.limit == Limit::kQueuePairType) {
    for (const QueuePairType type : kTypes) {
      if (!traits.Has(type)) continue;
      request->type = type;
      return true;
    }
    return false;
  }
  if (refusal.limit == Limit::kSharedReceiveQueue) {
    request->uses_srq = false;
    return true;
  }
  const std::optional<Argument> argument = ArgumentOf(*request, refusal.limit);
  if (!argument.has_value()) return false;
  const uint32_t asked = ValueOf(*request, *argument);
  auto value = static_cast<uint32_t>(refusal.allowed);
  if (refusal.asked != asked) value = Largest(device, *request, *argument);
  if (refusal.asked != asked && value == 0) value = asked / 2;
  if (value == asked) return false;
  *request = With(*request, *argument, value);
  return true;
}

}  // namespace

Refusals AllRefusals(const Device& device, QueuePairRequest request,
                     const queue_memory::Refusal& first) {
  Refusals refusals;
  const auto told = [&refusals](Limit limit) {
    return std::any_of(
        refusals.all.begin(), refusals.all.end(),
        [limit](const auto& each) { return each.limit == limit; });
  };
  // A limit that is met by halves comes again.
  for (int step = 0; step < 100; ++step) {
    const queue_memory::Refusal refusal =
        queue_memory::QueuePairMemory(device.provider, device.limits, request)
            .refusal;
    if (!refusal) break;
    if (!told(refusal.limit)) refusals.all.push_back(refusal);
    if (!Meet(device, refusal, &request)) break;
  }
  if (refusals.all.empty() && first) refusals.all.push_back(first);
  refusals.accepted = request;
  return refusals;
}

std::string OfAccepted(const Plan& plan) {
  return plan.complete() ? "" : "without what is refused, ";
}

std::string Where(const Workload& workload, base::YamlMark mark,
                  const std::string& path) {
  if (workload.source.empty()) return "";
  return fmt::format("{}:{}:{}: {}", workload.source, mark.line, mark.column,
                     path);
}

std::string WhereGroup(const Workload& workload, size_t group_index) {
  return Where(workload, workload.groups[group_index].mark,
               fmt::format("groups[{}]", group_index));
}

Refusal RefusalOf(const Workload& workload, size_t group_index,
                  const Device& device, const queue_memory::Refusal& refusal) {
  const Group& group = workload.groups[group_index];
  const std::optional<Argument> argument =
      ArgumentOf(group.request, refusal.limit);
  const base::YamlMark mark =
      argument ? group.argument_marks[static_cast<size_t>(*argument)]
               : group.mark;
  return {
      .where = Where(workload, mark, fmt::format("groups[{}]", group_index)),
      .text = Sentence(device, refusal) + Advice(device, group, refusal.limit)};
}

Refusal RefusalOf(const Workload& workload, const SharedReceiveQueues& queues,
                  const Device& device, const queue_memory::Refusal& refusal) {
  return {.where = Where(workload, queues.mark, queues.name),
          .text = Sentence(device, refusal)};
}

Refusal RefusalOf(const Workload& workload, const CompletionQueues& queues,
                  const Device& device, const queue_memory::Refusal& refusal) {
  return {.where = Where(workload, queues.mark, queues.name),
          .text = Sentence(device, refusal)};
}

}  // namespace purser::planner
