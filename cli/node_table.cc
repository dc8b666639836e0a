// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "cli/names.h"
#include "cli/node.h"
#include "node_view/sources.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using base::FormatCount;
using node_view::ContainerName;
using node_view::Holding;
using node_view::View;

constexpr size_t kMostProcesses = 3;

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

// "~" marks what is estimated, in whole or in part.
std::string AmountText(const node_view::Amount& amount) {
  return (amount.estimated > 0 ? "~" : "") + FormatCount(amount.total());
}

// "RC/RTS 12, UD/RTS 1".
std::string QueuePairsText(const Holding& holding) {
  std::string text;
  for (const auto& [type_and_state, count] : holding.queue_pairs)
    text += fmt::format("{}{}/{} {}", text.empty() ? "" : ", ",
                        type_and_state.first, type_and_state.second,
                        FormatCount(count));
  return OrDash(text);
}

std::string ProcessesText(const Holding& holding) {
  std::string text;
  for (size_t i = 0; i < holding.processes.size(); ++i) {
    if (i == kMostProcesses)
      return text + fmt::format(" and {} more", holding.processes.size() - i);
    const node_view::ProcessName& process = holding.processes[i];
    text += fmt::format("{}{}({})", text.empty() ? "" : ", ",
                        base::EscapeText(process.name), process.pid);
  }
  return OrDash(text);
}

std::string HoldingsTable(const View& view) {
  if (view.holdings.empty())
    return SaysWhoHolds(view) ? "nobody holds an RDMA queue\n"
                              : "who holds RDMA queues cannot be told\n";
  base::TextTable table("llllrrrr");
  table.Row({"DEVICE", "NAMESPACE", "POD", "CONTAINER", "QPS", "CQS", "NODE",
             "CONTAINER'S", "QUEUE PAIRS", "PROCESSES"});
  for (const Holding& holding : view.holdings)
    table.Row({holding.device, OrDash(holding.owner.namespace_name),
               OrDash(holding.owner.pod), holding.owner.container,
               FormatCount(holding.queue_pair_count()),
               FormatCount(holding.completion_queues),
               AmountText(holding.bytes.node),
               AmountText(holding.bytes.container), QueuePairsText(holding),
               ProcessesText(holding)});
  return table.Text() +
         "bytes by who is charged; ~: estimated, in whole or in part\n";
}

std::string AllocationsTable(const View& view) {
  if (view.allocations.empty()) return "";
  base::TextTable table("lllrr");
  table.Row({"NAMESPACE", "POD", "CONTAINER", "UNITS", "OF"});
  for (const node_view::Allocation& allocation : view.allocations)
    table.Row({allocation.holder.namespace_name, allocation.holder.pod,
               allocation.holder.container, FormatCount(allocation.units),
               allocation.resource});
  return "\n" + table.Text();
}

std::string Totals(const View& view) {
  base::TextTable table("lrl");
  const auto row = [&table](const std::string& what, uint64_t bytes) {
    table.Row({what, FormatCount(bytes), base::FormatBytes(bytes)});
  };
  if (view.undeclared_bytes) {
    for (const auto& [device, bytes] : *view.undeclared_bytes)
      row("undeclared on " + device, bytes);
  } else {
    table.Row({"undeclared", "?", "it cannot be told"});
  }
  for (const auto& [provider, total] : view.kernel_rings) {
    const std::string driver = queue_memory::ProviderName(provider);
    row("rings of " + driver + " in the kernel", total.bytes);
    row("of them with no process seen", total.unattributed());
  }
  if (view.reserved_memory_bytes)
    row("memory kept from pods", *view.reserved_memory_bytes);
  return "\n" + table.Text();
}

std::string Sources(const View& view) {
  std::string text;
  for (const node_view::SourceState& source : view.sources) {
    if (source.reason.empty() || source.reason == "not_needed") continue;
    text += fmt::format("without {} ({}): {}\n", source.name, source.reason,
                        base::EscapeText(source.detail));
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

bool SaysWhoHolds(const View& view) {
  return std::any_of(view.sources.begin(), view.sources.end(),
                     [](const node_view::SourceState& source) {
                       return source.name == node_view::kNetlink &&
                              source.reason.empty();
                     });
}

std::string RenderNode(const View& view) {
  return HoldingsTable(view) + AllocationsTable(view) + Totals(view) +
         Sources(view);
}

}  // namespace purser::cli
