// SPDX-License-Identifier: Apache-2.0
#include "planner/device_checks.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "planner/broken_rules.h"
#include "planner/completion_room.h"
#include "planner/refusal.h"
#include "planner/report.h"
#include "planner/send_operations.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatBytes;
using base::FormatCount;
using queue_memory::DeviceLimits;
using queue_memory::ObjectCounts;

// "rxe takes 32": `most` is told, or the provider's default; from `bound` on it
// is what the model goes by where neither says anything.
std::string Takes(const Device& device, uint64_t most,
                  uint64_t bound = UINT32_MAX) {
  if (most >= bound)
    return fmt::format("no limit by itself is known of {}", device.name);
  return fmt::format("{} takes {}", device.name, FormatCount(most));
}

// Of sends and receives.
std::string Takes(const Device& device, uint64_t sends, uint64_t receives,
                  uint64_t bound) {
  std::string text = Takes(device, sends, bound);
  if (receives != sends && receives < bound)
    text +=
        fmt::format("{} {} receives", sends < bound ? " sends and" : ", but",
                    FormatCount(receives));
  return text;
}

// The most that is asked for anywhere.
struct Most {
  uint64_t queue_pairs = 0;
  queue_memory::QueuePairRequest request{};
  uint32_t send_stride = 0, receive_stride = 0;
  uint64_t send_ring = 0, receive_ring = 0;
  uint32_t cqe = 0;
  uint64_t completion_queues = 0, shared_receive_queues = 0;
};

Most MostOf(const Workload& workload, const Plan& plan) {
  Most most;
  const auto raise = [](auto* value, auto other) {
    *value = std::max(*value, other);
  };
  for (size_t i = 0; i < workload.groups.size(); ++i) {
    const Group& group = workload.groups[i];
    const GroupPlan& planned = plan.groups[i];
    most.queue_pairs += group.count;
    for (const auto argument : queue_memory::kArguments)
      most.request = With(most.request, argument,
                          std::max(ValueOf(most.request, argument),
                                   ValueOf(group.request, argument)));
    raise(&most.send_stride, planned.each.send_ring.stride);
    raise(&most.receive_stride, planned.each.receive_ring.stride);
    raise(&most.send_ring, planned.each.send_ring.bytes);
    raise(&most.receive_ring, planned.each.receive_ring.bytes);
    raise(&most.cqe, planned.cqe);
    if (!group.completion_queues.has_value())
      most.completion_queues += group.count;
  }
  for (const QueuesPlan& queues : plan.completion_queues) {
    raise(&most.cqe, queues.entries);
    most.completion_queues += queues.count;
  }
  for (const QueuesPlan& queues : plan.shared_receive_queues)
    most.shared_receive_queues += queues.count;
  return most;
}

// "1 queue pair", "10 queue pairs".
std::string Counted(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", FormatCount(count), noun,
                     count == 1 ? "" : "s");
}

std::string UnlessKnown(const Device& device, uint64_t told) {
  return device.opened || told != 0
             ? ""
             : "; where yours has more, say so by --limit";
}

// Objects in number.
Finding Objects(const char* check, const char* noun, uint64_t of_pod,
                uint64_t ObjectCounts::*count, const Plan& plan) {
  const Device& device = plan.device;
  const uint64_t most = device.counts.*count;
  const uint64_t of_node = of_pod * plan.pods_per_node;
  if (most == 0)
    return {Level::kOk, check,
            fmt::format("{}; how many {} has is known of an opened device "
                        "alone",
                        Counted(of_pod, noun), device.name),
            ""};
  const std::string found =
      fmt::format("{} of a pod, {} of all its pods on a node; {} {} {}",
                  Counted(of_pod, noun), FormatCount(of_node), device.name,
                  Has(device, device.told_counts.*count), FormatCount(most));
  if (of_pod > most)
    return {Level::kFailure, check, found,
            "creation ends in ENOMEM or EINVAL: fewer, shared ones, or a "
            "further device" +
                UnlessKnown(device, device.told_counts.*count)};
  if (of_node > most)
    return {Level::kWarning, check, found, "fewer pods for each device"};
  return {Level::kOk, check, found, ""};
}

Finding Described(const Plan& plan) {
  const Device& device = plan.device;
  const std::string provider = queue_memory::ProviderName(device.provider);
  std::vector<std::string> words;
  if (provider != device.name) words.push_back(provider);
  if (!device.what.empty()) words.push_back(device.what);
  const std::string found =
      fmt::format("{}: {}", device.name, fmt::join(words, ", "));
  if (device.opened) return {Level::kOk, "device", found, ""};
  return {Level::kWarning, "device", found,
          "limits are the provider's usual ones, not read from a device; run "
          "it where the device is, with --device"};
}

Finding Model(const Plan& plan) {
  const std::string found = fmt::format(
      "figures of {} are {}", queue_memory::ProviderName(plan.device.provider),
      ExactnessName(plan.exactness));
  if (plan.exactness == queue_memory::Exactness::kExact)
    return {Level::kOk, "model", found, ""};
  return {Level::kWarning, "model", found,
          "create one queue pair of each group on the device and compare "
          "before you rely on them"};
}

// What is refused has no size.
std::string Sizes(const Plan& plan, const std::string& sizes) {
  const bool any =
      std::any_of(plan.groups.begin(), plan.groups.end(),
                  [](const GroupPlan& group) { return !group.each.refusal; });
  return any ? OfAccepted(plan) + sizes
             : "nothing that is asked for is accepted, so it has no size";
}

std::string TypesOf(const Workload& workload) {
  std::string text;
  uint32_t seen = 0;
  for (const Group& group : workload.groups) {
    if ((seen & queue_memory::Bit(group.request.type)) != 0) continue;
    seen |= queue_memory::Bit(group.request.type);
    text += (text.empty() ? "" : ", ") + TypeName(group.request.type);
  }
  return text;
}

}  // namespace

Findings DeviceFindings(const Workload& workload, const Plan& plan) {
  const Device& device = plan.device;
  const DeviceLimits limits =
      queue_memory::EffectiveLimits(device.provider, device.limits);
  const BrokenRules broken(workload, plan);
  const Most most = MostOf(workload, plan);
  const auto& request = most.request;
  return {
      Described(plan),
      Model(plan),
      broken.Tell(Rule::kTransport, TypesOf(workload)),
      Objects("max_qp", "queue pair", most.queue_pairs, &ObjectCounts::max_qp,
              plan),
      broken.Tell(Rule::kDepth,
                  fmt::format("at most {} sends and {} receives; {}",
                              FormatCount(request.max_send_wr),
                              FormatCount(request.max_recv_wr),
                              Takes(device, limits.max_qp_wr,
                                    limits.max_recv_wr, UINT32_MAX))),
      broken.Tell(Rule::kSge,
                  fmt::format("at most {} of a send and {} of a receive; {}",
                              request.max_send_sge, request.max_recv_sge,
                              Takes(device, limits.max_sge, limits.max_recv_sge,
                                    kMostSge))),
      broken.Tell(
          Rule::kInline,
          fmt::format("at most {} bytes; {}", request.max_inline_data,
                      Takes(device, limits.max_inline_data, kMostInlineData))),
      broken.Tell(
          Rule::kEntry,
          Sizes(plan,
                fmt::format("entries of {} bytes for sends, {} for receives",
                            most.send_stride, most.receive_stride))),
      broken.Tell(Rule::kRing,
                  Sizes(plan, fmt::format("rings of up to {} for sends, {} for "
                                          "receives",
                                          FormatBytes(most.send_ring),
                                          FormatBytes(most.receive_ring)))),
      broken.Tell(Rule::kCqe,
                  Sizes(plan, fmt::format("at most {} entries; {}",
                                          FormatCount(most.cqe),
                                          Takes(device, limits.max_cqe)))),
      Objects("max_cq", "completion queue", most.completion_queues,
              &ObjectCounts::max_cq, plan),
      CompletionRoom(workload, plan),
      Objects("max_srq", "shared receive queue", most.shared_receive_queues,
              &ObjectCounts::max_srq, plan),
      broken.Tell(Rule::kSharedReceives,
                  most.shared_receive_queues == 0
                      ? "none asked for"
                      : fmt::format("{} of them",
                                    FormatCount(most.shared_receive_queues))),
  };
}

}  // namespace purser::planner
