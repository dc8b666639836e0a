// SPDX-License-Identifier: Apache-2.0
#include "planner/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

std::ptrdiff_t Count(std::span<const Finding> findings, Level level) {
  return std::count_if(
      findings.begin(), findings.end(),
      [level](const Finding& each) { return each.level == level; });
}

}  // namespace

const char* LevelName(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarning:
      return "warning";
    case Level::kFailure:
      break;
  }
  return "failure";
}

Level Worst(std::span<const Finding> findings) {
  Level worst = Level::kOk;
  for (const Finding& finding : findings)
    worst = std::max(worst, finding.level);
  return worst;
}

std::string RenderFindings(std::span<const Finding> findings) {
  base::TextTable table("lll");
  for (const Finding& finding : findings)
    table.Row({LevelName(finding.level), finding.check,
               finding.advice.empty()
                   ? finding.found
                   : fmt::format("{}: {}", finding.found, finding.advice)});
  const auto warnings = Count(findings, Level::kWarning);
  const auto failures = Count(findings, Level::kFailure);
  return fmt::format("{}{} ok, {} warning{}, {} failure{}\n", table.Text(),
                     Count(findings, Level::kOk), warnings,
                     warnings == 1 ? "" : "s", failures,
                     failures == 1 ? "" : "s");
}

std::string RenderFindingsJson(std::span<const Finding> findings) {
  using Json = nlohmann::ordered_json;
  Json lines = Json::array();
  for (const Finding& finding : findings)
    lines.push_back({{"level", LevelName(finding.level)},
                     {"check", finding.check},
                     {"found", finding.found},
                     {"advice", finding.advice}});
  const Json document = {{"result", LevelName(Worst(findings))},
                         {"findings", std::move(lines)}};
  // What is no UTF-8, as in a device's name, must not throw.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace purser::planner
