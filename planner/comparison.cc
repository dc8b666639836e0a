// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"
#include "base/text_table.h"
#include "planner/report.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatBytes;

std::string FirstRefusal(const Report& report) {
  if (!report.status.ok()) return std::string(report.status.message());
  const Refusal& first = report.plan.refusals[0];
  const std::string where =
      first.where.empty() ? "" : fmt::format("{}: ", first.where);
  const size_t others = report.plan.refusals.size() - 1;
  return fmt::format("{}{}{}", where, first.text,
                     others == 0 ? "" : fmt::format(" (and {} more)", others));
}

// Of the first group: those of others are in proportion.
std::string Depths(const Workload& workload) {
  const auto& request = workload.groups[0].request;
  return fmt::format("{}/{}", request.max_send_wr, request.max_recv_wr);
}

}  // namespace

std::string RenderComparison(std::span<const Report> reports) {
  const bool fitted = !reports.empty() && reports[0].budget.has_value();
  base::TextTable table(fitted ? "lrrrrrrl" : "lrrrrrl");
  std::vector<std::string> head = {"DEVICE",  "POD",     "CONTAINER", "NODE",
                                   "WQE-MIB", "CONTEXT", "FIGURES"};
  if (fitted) head.insert(head.begin() + 1, "DEPTHS");
  table.Row(head);
  std::string refusals;
  for (const Report& report : reports) {
    if (report.refused()) {
      refusals +=
          fmt::format("{}: {}\n", report.device.name, FirstRefusal(report));
      continue;
    }
    const Totals& pod = report.plan.pod;
    std::vector<std::string> row = {report.device.name,
                                    FormatBytes(pod.queues.total()),
                                    FormatBytes(pod.queues.container),
                                    FormatBytes(pod.queues.node),
                                    base::FormatCount(report.plan.units()),
                                    FormatBytes(pod.context),
                                    ExactnessName(report.plan.exactness)};
    if (fitted) row.insert(row.begin() + 1, Depths(*report.planned));
    table.Row(row);
  }
  std::string text = table.Text();
  for (const Report& report : reports) {
    if (fitted || report.refused()) continue;
    text += fmt::format("\ntextbook sum of the work queues: {}\n",
                        FormatBytes(report.plan.pod.textbook));
    break;
  }
  if (!refusals.empty()) text += "\nrefused by\n" + refusals;
  return text;
}

}  // namespace purser::planner
