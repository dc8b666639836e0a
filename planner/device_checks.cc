// SPDX-License-Identifier: Apache-2.0
#include "planner/device_checks.h"

#include <algorithm>
#include <string_view>

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

// `bound`: what the model takes where nothing is told.
std::string Takes(uint64_t most, uint64_t bound = UINT32_MAX) {
  return most >= bound ? "any" : FormatCount(most);
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

// Objects in number.
Finding Objects(const char* check, const char* noun, uint64_t of_pod,
                uint64_t of_node, uint64_t most, const Plan& plan) {
  if (most == 0)
    return {Level::kOk, check,
            fmt::format("{} {}; how many {} has is not told",
                        FormatCount(of_pod), noun, plan.device.name),
            ""};
  const std::string found = fmt::format(
      "{} {} of a pod, {} of the node's pods; {} has {}", FormatCount(of_pod),
      noun, FormatCount(of_node), plan.device.name, FormatCount(most));
  if (of_pod > most)
    return {Level::kFailure, check, found,
            "creation ends in ENOMEM or EINVAL: fewer, shared ones, or a "
            "further device"};
  if (of_node > most)
    return {Level::kWarning, check, found, "fewer pods for each device"};
  return {Level::kOk, check, found, ""};
}

Finding Described(const Plan& plan) {
  const Device& device = plan.device;
  const std::string found = fmt::format(
      "{}: {}{}{}", device.name, queue_memory::ProviderName(device.provider),
      device.what.empty() ? "" : ", ", device.what);
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
  const uint64_t pods = workload.pods_per_node;
  const std::string accepted = OfAccepted(plan);
  return {
      Described(plan),
      Model(plan),
      broken.Tell(Rule::kTransport, TypesOf(workload)),
      Objects("max_qp", "queue pairs", most.queue_pairs,
              most.queue_pairs * pods, device.max_qp, plan),
      broken.Tell(Rule::kDepth,
                  fmt::format("at most {} sends and {} receives; {} takes {}",
                              FormatCount(request.max_send_wr),
                              FormatCount(request.max_recv_wr), device.name,
                              Takes(limits.max_qp_wr))),
      broken.Tell(Rule::kSge,
                  fmt::format("at most {} of a send and {} of a receive; {} "
                              "takes {} and {}",
                              request.max_send_sge, request.max_recv_sge,
                              device.name, Takes(limits.max_sge, kMostSge),
                              Takes(limits.max_recv_sge, kMostSge))),
      broken.Tell(Rule::kInline,
                  fmt::format("at most {} bytes; {} takes {}",
                              request.max_inline_data, device.name,
                              Takes(limits.max_inline_data, kMostInlineData))),
      broken.Tell(Rule::kEntry,
                  fmt::format("{}entries of {} bytes for sends, {} for "
                              "receives",
                              accepted, most.send_stride, most.receive_stride)),
      broken.Tell(Rule::kRing,
                  fmt::format("{}rings of up to {} for sends, {} for "
                              "receives",
                              accepted, FormatBytes(most.send_ring),
                              FormatBytes(most.receive_ring))),
      broken.Tell(Rule::kCqe, fmt::format("{}at most {} entries; {} takes {}",
                                          accepted, FormatCount(most.cqe),
                                          device.name, Takes(limits.max_cqe))),
      Objects("max_cq", "completion queues", most.completion_queues,
              most.completion_queues * pods, device.max_cq, plan),
      CompletionRoom(workload, plan),
      Objects("max_srq", "shared receive queues", most.shared_receive_queues,
              most.shared_receive_queues * pods, device.max_srq, plan),
      broken.Tell(Rule::kSharedReceives,
                  most.shared_receive_queues == 0
                      ? "none asked for"
                      : fmt::format("{} of them",
                                    FormatCount(most.shared_receive_queues))),
  };
}

}  // namespace purser::planner
