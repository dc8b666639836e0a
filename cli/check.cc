// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/plan_workload.h"
#include "planner/device_checks.h"
#include "planner/machine_checks.h"
#include "planner/triage.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using planner::Findings;

struct RequestKey {
  std::string_view name;
  uint32_t& (*field)(WorkloadSource&);
};
constexpr RequestKey kRequestKeys[] = {
    {"send-wr",
     [](auto& s) -> uint32_t& { return s.group.request.max_send_wr; }},
    {"send-sge",
     [](auto& s) -> uint32_t& { return s.group.request.max_send_sge; }},
    {"inline",
     [](auto& s) -> uint32_t& { return s.group.request.max_inline_data; }},
    {"recv-wr",
     [](auto& s) -> uint32_t& { return s.group.request.max_recv_wr; }},
    {"recv-sge",
     [](auto& s) -> uint32_t& { return s.group.request.max_recv_sge; }},
    {"srq-wr",
     [](auto& s) -> uint32_t& { return s.shared_receive_queue.max_wr; }},
    {"srq-sge",
     [](auto& s) -> uint32_t& { return s.shared_receive_queue.max_sge; }},
};
constexpr std::string_view kType = "type";

absl::Status BadRequest(const std::string& part, const std::string& why) {
  return absl::InvalidArgumentError(fmt::format(
      "--request: \"{}\": {}; write NAME=VALUE, separated by commas, such as "
      "type=rc,send-wr=256,send-sge=4",
      part, why));
}

absl::Status AddPart(const std::string& part, WorkloadSource* source) {
  const std::vector<std::string> sides =
      absl::StrSplit(part, absl::MaxSplits('=', 1));
  if (sides.size() != 2) return BadRequest(part, "has no =");
  if (sides[0] == kType) {
    source->type = sides[1];
    return absl::OkStatus();
  }
  std::vector<std::string_view> names = {kType};
  for (const RequestKey& key : kRequestKeys) {
    names.push_back(key.name);
    if (sides[0] != key.name) continue;
    // What a program may have asked for is anything that verbs can be told.
    return absl::SimpleAtoi(sides[1], &key.field(*source))
               ? absl::OkStatus()
               : BadRequest(part, "is no number of 32 bits");
  }
  return BadRequest(part, fmt::format("no such name{}; there are {}",
                                      base::DidYouMean(sides[0], names),
                                      fmt::join(names, ", ")));
}

absl::StatusOr<WorkloadSource> SourceOf(const CheckCommand& command) {
  WorkloadSource source = command;
  if (command.request.empty()) return source;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(command.request, ',')))
    PURSER_RETURN_IF_ERROR(AddPart(part, &source));
  return source;
}

absl::StatusOr<planner::Demand> DemandOf(const CheckCommand& command) {
  planner::Demand demand{.huge_pages = command.huge_pages,
                         .budget = command.budget};
  for (const std::string& text : command.buffers) {
    auto buffers = planner::ParseBuffers(text);
    if (!buffers.ok())
      return absl::InvalidArgumentError(
          fmt::format("--buffer: {}", std::string(buffers.status().message())));
    demand.buffers.push_back(*buffers);
  }
  return demand;
}

absl::StatusOr<Findings> FindingsOf(const CheckCommand& command,
                                    const Environment& environment) {
  PURSER_ASSIGN_OR_RETURN(const planner::Demand demand, DemandOf(command));
  PURSER_ASSIGN_OR_RETURN(const WorkloadSource source, SourceOf(command));
  PURSER_ASSIGN_OR_RETURN(const planner::Workload workload, WorkloadOf(source));
  planner::Errno error{};
  if (!command.explain.empty()) {
    PURSER_ASSIGN_OR_RETURN(error, planner::ErrnoFromName(command.explain));
  }
  PURSER_ASSIGN_OR_RETURN(const planner::Device device,
                          DeviceOf(source, workload, environment));
  PURSER_ASSIGN_OR_RETURN(const planner::Plan plan,
                          planner::MakePlan(workload, device));
  const planner::Machine machine = environment.read_machine();
  if (!command.explain.empty())
    return planner::Explain(
        {.error = error,
         .workload = workload,
         .plan = plan,
         .demand = demand,
         .machine = machine,
         .counters = environment.read_counters(device.name)});
  Findings findings = planner::DeviceFindings(workload, plan);
  for (planner::Finding& finding :
       planner::MachineFindings(plan, demand, machine))
    findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

int Check(const CheckCommand& command, Environment& environment) {
  const auto findings = FindingsOf(command, environment);
  if (!findings.ok()) {
    (void)Fail(findings.status(), environment);
    return absl::IsInvalidArgument(findings.status()) ? kUsage : kFailure;
  }
  environment.out << (command.output == Output::kJson
                          ? planner::RenderFindingsJson(*findings)
                          : planner::RenderFindings(*findings));
  const planner::Level worst = planner::Worst(*findings);
  const bool refused = worst == planner::Level::kFailure ||
                       (command.strict && worst == planner::Level::kWarning);
  return refused ? kRefused : kOk;
}

}  // namespace purser::cli
