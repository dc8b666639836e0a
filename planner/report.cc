// SPDX-License-Identifier: Apache-2.0
#include "planner/report.h"

#include <utility>

#include "planner/fit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

constexpr size_t kMostNeighbours = 10;
constexpr size_t kMostRefusals = 100;

absl::Status Fill(Report* report) {
  report->planned = report->asked;
  if (report->budget.has_value()) {
    auto fitted = Fit(*report->asked, report->device, *report->budget);
    if (!fitted.ok()) return fitted.status();
    report->planned = std::make_shared<const Workload>(*std::move(fitted));
  }
  auto plan = MakePlan(*report->planned, report->device);
  if (!plan.ok()) return plan.status();
  report->plan = *std::move(plan);
  report->neighbours =
      FindNeighbours(*report->planned, report->plan, kMostNeighbours);
  return absl::OkStatus();
}

}  // namespace

Report MakeReport(std::shared_ptr<const Workload> workload,
                  const Device& device, std::optional<uint64_t> budget) {
  Report report{
      .device = device, .asked = std::move(workload), .budget = budget};
  report.status = Fill(&report);
  return report;
}

const char* ExactnessName(queue_memory::Exactness exactness) {
  switch (exactness) {
    case queue_memory::Exactness::kExact:
      return "exact";
    case queue_memory::Exactness::kEstimated:
      return "estimated";
    case queue_memory::Exactness::kFallback:
      break;
  }
  return "fallback";
}

std::string RenderRefusals(const Report& report) {
  if (!report.status.ok())
    return fmt::format("{}\n", std::string(report.status.message()));
  std::string text;
  for (size_t i = 0; i < report.plan.refusals.size(); ++i) {
    if (i == kMostRefusals) {
      text += fmt::format("and {} more refusals\n",
                          report.plan.refusals.size() - kMostRefusals);
      break;
    }
    const Refusal& refusal = report.plan.refusals[i];
    text += fmt::format("{}{}{}\n", refusal.where,
                        refusal.where.empty() ? "" : ": ", refusal.text);
  }
  return text;
}

}  // namespace purser::planner
