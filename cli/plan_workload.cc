// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_workload.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "planner/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

absl::Status WithOption(const std::string& option, const absl::Status& status) {
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", option, std::string(status.message())));
}

absl::StatusOr<planner::Workload> OfFlags(const PlanCommand& command) {
  planner::Workload workload;
  planner::Group group = command.group;
  group.name = "all";
  const auto type =
      planner::QueuePairTypeFromName(absl::AsciiStrToLower(command.type));
  if (!type.ok()) return WithOption("--type", type.status());
  group.request.type = *type;
  for (const std::string& name : command.send_ops) {
    const auto bits = planner::SendOperation(name, *type);
    if (!bits.ok()) return WithOption("--send-op", bits.status());
    group.request.send_ops |= *bits;
  }
  if (command.shared_receive_queue.max_wr > 0) {
    workload.shared_receive_queues.push_back(
        {.name = "srq", .request = command.shared_receive_queue});
    group.shared_receive_queues = 0;
    group.request.uses_srq = true;
  }
  if (command.shared_cq) {
    workload.completion_queues.push_back({.name = "cq"});
    group.completion_queues = 0;
  }
  if (!HasReceiveSide(group))
    group.request.max_recv_wr = group.request.max_recv_sge = 0;
  workload.groups.push_back(std::move(group));
  return workload;
}

absl::Status AddLimit(const std::string& text, planner::Device* device) {
  const size_t equals = text.find('=');
  uint32_t value = 0;
  if (equals == std::string::npos ||
      !absl::SimpleAtoi(text.substr(equals + 1), &value) || value == 0)
    return absl::InvalidArgumentError(fmt::format(
        "--limit: '{}': write NAME=NUMBER, such as maxQpWr=16384", text));
  const absl::Status status =
      planner::SetLimit(text.substr(0, equals), value, device);
  return status.ok() ? status : WithOption("--limit", status);
}

}  // namespace

absl::StatusOr<planner::Workload> WorkloadOf(const PlanCommand& command) {
  planner::Workload workload;
  if (command.file.empty()) {
    PURSER_ASSIGN_OR_RETURN(workload, OfFlags(command));
  } else {
    const std::string path = command.file == "-" ? "/dev/stdin" : command.file;
    PURSER_ASSIGN_OR_RETURN(const std::string text,
                            base::ReadFile(path, planner::kLongestWorkload));
    PURSER_ASSIGN_OR_RETURN(workload,
                            planner::ReadWorkload(command.file, text));
  }
  if (command.pods_per_node != 0)
    workload.pods_per_node = command.pods_per_node;
  return workload;
}

absl::StatusOr<std::vector<planner::Device>> DevicesOf(
    const PlanCommand& command, const planner::Workload& workload,
    const Environment& environment) {
  std::vector<planner::Device> devices;
  if (!command.device.empty()) {
    PURSER_ASSIGN_OR_RETURN(planner::Device device,
                            environment.find_device(command.device));
    devices.push_back(std::move(device));
  } else if (!command.provider.empty()) {
    auto device = planner::DeviceOfProfile(command.provider);
    if (!device.ok()) return WithOption("--provider", device.status());
    devices.push_back(*std::move(device));
  } else if (workload.device.has_value() && !command.all_providers) {
    devices.push_back(*workload.device);
  }
  if (devices.empty() && !command.limits.empty())
    return absl::InvalidArgumentError(
        "--limit is that of one device: add --provider or --device");
  for (const std::string& limit : command.limits)
    PURSER_RETURN_IF_ERROR(AddLimit(limit, &devices[0]));
  return devices.empty() ? planner::AllDevices() : devices;
}

}  // namespace purser::cli
