// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/plan_workload.h"
#include "cli/request.h"
#include "planner/device_checks.h"
#include "planner/machine_checks.h"
#include "planner/triage.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using planner::Findings;

absl::StatusOr<WorkloadSource> SourceOf(const CheckCommand& command) {
  WorkloadSource source = command;
  if (!command.request.empty())
    PURSER_RETURN_IF_ERROR(ReadRequest(command.request, &source));
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
