// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/plan_workload.h"
#include "planner/plot.h"
#include "planner/report.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

int Refuse(const absl::Status& status, Environment& environment) {
  (void)Fail(status, environment);
  return absl::IsInvalidArgument(status) ? kUsage : kFailure;
}

bool WriteFile(const std::string& path, const std::string& text,
               Environment& environment) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file.fail()) return true;
  environment.err << fmt::format(
      "purser: cannot write {}: is its directory there, and writable?\n", path);
  return false;
}

// By whatever names and links.
bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code ignored;  // one that is not there is none
  return std::filesystem::equivalent(a, b, ignored);
}

std::string Render(const std::vector<planner::Report>& reports, Output output) {
  if (output == Output::kJson) return planner::RenderJson(reports);
  if (output == Output::kYaml) return planner::RenderYaml(reports);
  return reports.size() == 1 ? planner::RenderTable(reports[0])
                             : planner::RenderComparison(reports);
}

}  // namespace

int Plan(const PlanCommand& command, Environment& environment) {
  if (IsSameFile(command.file, command.plot)) {
    environment.err << fmt::format(
        "purser: --plot {} would overwrite the workload {}: name another "
        "file\n",
        command.plot, command.file);
    return kUsage;
  }
  auto read = WorkloadOf(command);
  if (!read.ok()) return Refuse(read.status(), environment);
  const auto workload =
      std::make_shared<const planner::Workload>(*std::move(read));
  const auto devices = DevicesOf(command, *workload, environment);
  if (!devices.ok()) return Refuse(devices.status(), environment);

  std::vector<planner::Report> reports;
  bool any = false;
  for (const planner::Device& device : *devices) {
    reports.push_back(planner::MakeReport(workload, device, command.fit));
    any |= !reports.back().refused();
    // Side by side only sums are shown.
    if (devices->size() > 1) reports.back().plan.groups = {};
  }
  if (devices->size() > 1 || reports[0].status.ok())
    environment.out << Render(reports, command.output);
  if (!command.plot.empty() &&
      !WriteFile(command.plot, planner::Plot(reports), environment))
    return kFailure;
  if (any) return kOk;
  if (devices->size() == 1)
    environment.err << "refused:\n" << planner::RenderRefusals(reports[0]);
  return kRefused;
}

}  // namespace purser::cli
