// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_workload.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/utf8.h"
#include "base/yaml_scalars.h"
#include "planner/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

absl::Status WithOption(const std::string& option, const absl::Status& status) {
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", option, std::string(status.message())));
}

absl::StatusOr<planner::Workload> OfFlags(const WorkloadSource& source) {
  planner::Workload workload;
  planner::Group group = source.group;
  group.name = "all";
  const auto type =
      planner::QueuePairTypeFromName(absl::AsciiStrToLower(source.type));
  if (!type.ok()) return WithOption("--type", type.status());
  group.request.type = *type;
  for (const std::string& name : source.send_ops) {
    const auto bits = planner::SendOperation(name, *type);
    if (!bits.ok()) return WithOption("--send-op", bits.status());
    group.request.send_ops |= *bits;
  }
  if (source.shared_receive_queue.max_wr > 0) {
    workload.shared_receive_queues.push_back(
        {.name = "srq", .request = source.shared_receive_queue});
    group.shared_receive_queues = 0;
    group.request.uses_srq = true;
  }
  if (source.shared_cq) {
    workload.completion_queues.push_back({.name = "cq"});
    group.completion_queues = 0;
  }
  if (!HasReceiveSide(group))
    group.request.max_recv_wr = group.request.max_recv_sge = 0;
  workload.groups.push_back(std::move(group));
  return workload;
}

absl::Status AddLimit(const std::string& text, std::set<std::string>* given,
                      planner::Device* device) {
  const size_t equals = text.find('=');
  const auto value =
      equals == std::string::npos
          ? std::nullopt
          : base::ParseYamlUint(std::string_view(text).substr(equals + 1));
  if (!value.has_value())
    return absl::InvalidArgumentError(
        fmt::format("--limit: {}: write NAME=NUMBER, such as maxQpWr=16384",
                    base::QuoteForMessage(text)));
  const std::string name = text.substr(0, equals);
  if (!given->insert(name).second)
    return absl::InvalidArgumentError(
        fmt::format("--limit: {} is given twice: remove one", name));
  const absl::Status status = planner::SetLimit(name, *value, device);
  return status.ok() ? status : WithOption("--limit " + name, status);
}

absl::Status AddLimits(const WorkloadSource& source, planner::Device* device) {
  if (!source.kernel_version.empty()) {
    const absl::Status status =
        planner::SetKernelVersion(source.kernel_version, device);
    if (!status.ok()) return WithOption("--kernel-version", status);
  }
  std::set<std::string> given;
  for (const std::string& limit : source.limits)
    PURSER_RETURN_IF_ERROR(AddLimit(limit, &given, device));
  return absl::OkStatus();
}

// By flags.
absl::StatusOr<std::optional<planner::Device>> Named(
    const WorkloadSource& source, const Environment& environment) {
  if (!source.device.empty()) {
    PURSER_ASSIGN_OR_RETURN(planner::Device device,
                            environment.find_device(source.device));
    return device;
  }
  if (source.provider.empty()) return std::nullopt;
  auto device = planner::DeviceOfProfile(source.provider);
  if (!device.ok()) return WithOption("--provider", device.status());
  return *std::move(device);
}

}  // namespace

absl::StatusOr<planner::Workload> WorkloadOf(const WorkloadSource& source) {
  planner::Workload workload;
  if (source.file.empty()) {
    PURSER_ASSIGN_OR_RETURN(workload, OfFlags(source));
  } else {
    const std::string path = source.file == "-" ? "/dev/stdin" : source.file;
    PURSER_ASSIGN_OR_RETURN(
        const std::string text,
        base::ReadFile(path, planner::kLongestWorkload, base::FileKind::kAny));
    PURSER_ASSIGN_OR_RETURN(workload, planner::ReadWorkload(source.file, text));
  }
  if (source.pods_per_node != 0) workload.pods_per_node = source.pods_per_node;
  return workload;
}

absl::StatusOr<std::vector<planner::Device>> DevicesOf(
    const WorkloadSource& source, const planner::Workload& workload,
    const Environment& environment) {
  PURSER_ASSIGN_OR_RETURN(std::optional<planner::Device> device,
                          Named(source, environment));
  if (!device.has_value() && !source.all_providers) device = workload.device;
  if (!device.has_value())
    for (const auto& [option, given] :
         {std::pair{"--limit", !source.limits.empty()},
          {"--kernel-version", !source.kernel_version.empty()}})
      if (given)
        return absl::InvalidArgumentError(fmt::format(
            "{} is that of one device: add --provider or --device", option));
  if (!device.has_value()) return planner::AllDevices();
  PURSER_RETURN_IF_ERROR(AddLimits(source, &*device));
  return std::vector<planner::Device>{*std::move(device)};
}

absl::StatusOr<planner::Device> DeviceOf(const WorkloadSource& source,
                                         const planner::Workload& workload,
                                         const Environment& environment) {
  PURSER_ASSIGN_OR_RETURN(std::optional<planner::Device> device,
                          Named(source, environment));
  if (!device.has_value()) {
    auto only = environment.find_device("");
    if (only.ok()) {
      device = *std::move(only);
    } else if (absl::IsNotFound(only.status()) && workload.device.has_value()) {
      device = workload.device;
    } else {
      return only.status();
    }
  }
  PURSER_RETURN_IF_ERROR(AddLimits(source, &*device));
  return *std::move(device);
}

}  // namespace purser::cli
