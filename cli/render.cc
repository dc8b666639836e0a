// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/quantity.h"
#include "base/text_table.h"
#include "cli/names.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using base::FormatBytes;
using base::FormatCount;

struct Part {
  const char* name;
  v1::ChargedBytes bytes;
};

std::vector<Part> Parts(const v1::QueueMemory& memory) {
  std::vector<Part> parts{{"send ring", memory.send()},
                          {"receive ring", memory.receive()},
                          {"completion queue", memory.completion()},
                          {"shared receive", memory.shared_receive()},
                          {"arrays", memory.arrays()},
                          {"overhead", memory.overhead()}};
  std::erase_if(parts, [](const Part& part) {
    return part.name == std::string("shared receive") && Total(part.bytes) == 0;
  });
  return parts;
}

v1::ChargedBytes Sum(const std::vector<Part>& parts) {
  v1::ChargedBytes sum;
  for (const Part& part : parts) {
    sum.set_container_bytes(sum.container_bytes() +
                            part.bytes.container_bytes());
    sum.set_node_bytes(sum.node_bytes() + part.bytes.node_bytes());
  }
  return sum;
}

const char* ExactnessText(v1::Exactness exactness) {
  switch (exactness) {
    case v1::EXACTNESS_EXACT:
      return "exact, by the provider's own rule";
    case v1::EXACTNESS_ESTIMATED:
      return "estimated: the provider's rule with assumed device values";
    case v1::EXACTNESS_FALLBACK:
      return "unknown provider: textbook sum with a safety factor";
    default:
      return "";
  }
}

std::string RenderMemory(const v1::QueueMemory& memory) {
  base::TextTable table("lrrrr", 2);
  table.Row({"memory", "container", "node", "bytes"});
  std::vector<Part> parts = Parts(memory);
  parts.push_back({"total", Sum(parts)});
  for (const Part& part : parts)
    table.Row({part.name, FormatCount(part.bytes.container_bytes()),
               FormatCount(part.bytes.node_bytes()),
               FormatCount(Total(part.bytes)), FormatBytes(Total(part.bytes))});
  table.Row({"textbook sum", "", "", FormatCount(memory.textbook_bytes()),
             FormatBytes(memory.textbook_bytes())});
  std::string text = table.Text();
  if (memory.textbook_bytes() > 0)
    text += fmt::format("  it takes {:.1f} x the textbook sum; {}\n",
                        static_cast<double>(memory.total_bytes()) /
                            static_cast<double>(memory.textbook_bytes()),
                        ExactnessText(memory.exactness()));
  return text;
}

// How the refusing bound counts: container-charged bytes alone or all.
bool ContainerAlone(v1::BudgetSource bound) {
  return bound == v1::BUDGET_SOURCE_CGROUP ||
         bound == v1::BUDGET_SOURCE_MEMLOCK;
}

std::string RenderBudgetRefusal(const v1::Refusal& refusal) {
  const bool container_alone = ContainerAlone(refusal.bound());
  const uint64_t left = refusal.budget_bytes() -
                        std::min(refusal.budget_bytes(), refusal.used_bytes());
  base::TextTable table("lrrl", 2);
  const auto row = [&table](const std::string& name, uint64_t bytes,
                            const std::string& note = {}) {
    table.Row({name, FormatCount(bytes), FormatBytes(bytes), note});
  };
  for (const Part& part : Parts(refusal.needed()))
    row(part.name,
        container_alone ? part.bytes.container_bytes() : Total(part.bytes));
  row("needed", refusal.needed_bytes(),
      container_alone ? "container-charged bytes alone" : "");
  row("+ used", refusal.used_bytes());
  row("= would be", refusal.needed_bytes() + refusal.used_bytes());
  row("budget", refusal.budget_bytes(),
      "bound: " + SourceName(refusal.bound()));
  row("left", left);
  row("short by",
      refusal.needed_bytes() - std::min(left, refusal.needed_bytes()));
  std::string text = "refused: more queue memory than the budget has left\n";
  text += table.Text();
  text += refusal.largest_max_send_wr() == 0
              ? "  no max_send_wr would fit now, all else as asked\n"
              : fmt::format(
                    "  largest max_send_wr that fits now: {}, all else "
                    "as asked\n",
                    refusal.largest_max_send_wr());
  return text;
}

std::string CapText(uint32_t wr, uint32_t sge) {
  return fmt::format("{}/{}", wr, sge);
}

std::string ClientText(const v1::QueuePair& queue_pair) {
  return queue_pair.client_name() +
         (queue_pair.detached() ? " (detached)" : "");
}

uint64_t TotalBytes(std::span<const v1::QueuePair> queue_pairs) {
  return std::accumulate(queue_pairs.begin(), queue_pairs.end(), uint64_t{0},
                         [](uint64_t sum, const v1::QueuePair& queue_pair) {
                           return sum + queue_pair.memory().total_bytes();
                         });
}

std::string Bar(uint64_t used, uint64_t limit) {
  constexpr int width = 40;
  const double share = limit == 0
                           ? 1
                           : std::min(1.0, static_cast<double>(used) /
                                               static_cast<double>(limit));
  const int filled = static_cast<int>(std::lround(share * width));
  return fmt::format("[{}{}] {:.1f} %", std::string(filled, '#'),
                     std::string(width - filled, '.'), share * 100);
}

}  // namespace

std::string RenderCreated(const v1::Capabilities& asked,
                          const v1::QueuePair& queue_pair) {
  const v1::Capabilities& granted = queue_pair.cap();
  std::string text = fmt::format(
      "queue pair {} on {}: {}, qp_num {}, gid {}, {}\n", queue_pair.id(),
      queue_pair.device(), TypeName(queue_pair.type()), queue_pair.qp_num(),
      GidText(queue_pair.local().gid()), StateName(queue_pair.state()));
  base::TextTable table("lrrr", 2);
  const auto row = [&table](const char* name, uint32_t was_asked,
                            uint32_t was_granted,
                            const std::string& slots = {}) {
    table.Row({name, FormatCount(was_asked), FormatCount(was_granted), slots});
  };
  table.Row({"capacity", "asked", "granted", "posts it takes"});
  row("max_send_wr", asked.max_send_wr(), granted.max_send_wr(),
      FormatCount(queue_pair.send_slots()));
  row("max_send_sge", asked.max_send_sge(), granted.max_send_sge());
  row("max_inline_data", asked.max_inline_data(), granted.max_inline_data());
  row("max_recv_wr", asked.max_recv_wr(), granted.max_recv_wr(),
      FormatCount(queue_pair.recv_slots()));
  row("max_recv_sge", asked.max_recv_sge(), granted.max_recv_sge());
  return text + table.Text() + RenderMemory(queue_pair.memory());
}

std::string RenderCreatedMany(uint32_t asked,
                              std::span<const v1::QueuePair> queue_pairs) {
  std::string text =
      fmt::format("created {} of {}", FormatCount(queue_pairs.size()),
                  Count(asked, "queue pair"));
  if (queue_pairs.empty()) return text + "\n";
  const v1::QueuePair& first = queue_pairs.front();
  const uint64_t each = first.memory().total_bytes();
  text += fmt::format(": {} on {}, ids {} to {}\n", TypeName(first.type()),
                      first.device(), first.id(), queue_pairs.back().id());
  base::TextTable table("lrr", 2);
  table.Row({"each", FormatCount(each), FormatBytes(each)});
  const uint64_t total = TotalBytes(queue_pairs);
  table.Row({"together", FormatCount(total), FormatBytes(total)});
  const uint64_t textbook =
      first.memory().textbook_bytes() * queue_pairs.size();
  table.Row({"textbook sum", FormatCount(textbook), FormatBytes(textbook)});
  return text + table.Text();
}

std::string RenderRefusal(const v1::Refusal& refusal,
                          const std::string& message) {
  const bool by_budget = refusal.reason() == v1::REASON_BUDGET;
  const std::string text = by_budget ? RenderBudgetRefusal(refusal)
                                     : fmt::format("refused: {}\n", message);
  if (refusal.remedy().empty() ||
      text.find(refusal.remedy()) != std::string::npos)
    return text;
  return text + fmt::format("  what to do: {}\n", refusal.remedy());
}

std::string RenderList(const std::vector<v1::QueuePair>& queue_pairs) {
  if (queue_pairs.empty()) return "no queue pairs\n";
  base::TextTable table("rrlllrrrrr");
  table.Row({"ID", "QP_NUM", "DEVICE", "TYPE", "STATE", "SEND WR/SGE",
             "RECV WR/SGE", "MEMORY", "SENDS", "RECVS", "CLIENT"});
  for (const v1::QueuePair& queue_pair : queue_pairs) {
    const v1::Capabilities& cap = queue_pair.cap();
    table.Row({std::to_string(queue_pair.id()),
               std::to_string(queue_pair.qp_num()), queue_pair.device(),
               TypeName(queue_pair.type()), StateName(queue_pair.state()),
               CapText(cap.max_send_wr(), cap.max_send_sge()),
               CapText(cap.max_recv_wr(), cap.max_recv_sge()),
               FormatBytes(queue_pair.memory().total_bytes()),
               std::to_string(queue_pair.outstanding_sends()),
               std::to_string(queue_pair.outstanding_receives()),
               ClientText(queue_pair)});
  }
  return table.Text() + fmt::format("{}, {}\n",
                                    Count(queue_pairs.size(), "queue pair"),
                                    Bytes(TotalBytes(queue_pairs)));
}

namespace {

// A line for each scope that is short of memory.
std::string RenderPressure(const v1::GetBudgetResponse& budget) {
  std::string text;
  for (const v1::MemoryPressure& pressure : budget.memory_pressure()) {
    if (pressure.state() <= v1::PRESSURE_STATE_NORMAL) continue;
    text += fmt::format("{} memory is {}: {}\n", ScopeName(pressure.scope()),
                        PressureName(pressure.state()), pressure.why());
  }
  return text;
}

}  // namespace

std::string RenderBudget(const v1::GetBudgetResponse& budget) {
  base::TextTable table("llrrrll");
  table.Row({"", "BOUND", "LIMIT", "USED", "LEFT", "COUNTS", "FROM"});
  std::string bar;
  for (const auto& bound : budget.bounds()) {
    const uint64_t left =
        bound.limit_bytes() - std::min(bound.limit_bytes(), bound.used_bytes());
    table.Row({bound.binding() ? "*" : "", SourceName(bound.source()),
               FormatBytes(bound.limit_bytes()),
               FormatBytes(bound.used_bytes()), FormatBytes(left),
               bound.container_only() ? "container-charged" : "all",
               bound.origin()});
    if (bound.binding()) bar = Bar(bound.used_bytes(), bound.limit_bytes());
  }
  base::TextTable sums("lrrl");
  const auto row = [&sums](const char* name, uint64_t bytes) {
    sums.Row({name, FormatCount(bytes), FormatBytes(bytes)});
  };
  row("used, container-charged", budget.used().container_bytes());
  row("used, node", budget.used().node_bytes());
  row("headroom", budget.headroom_bytes());
  if (budget.overcommitted_bytes() > 0)
    row("over-committed", budget.overcommitted_bytes());
  return table.Text() + "\n" + sums.Text() +
         fmt::format("{}\n{}{}, {}\n", bar,
                     Count(budget.queue_pairs(), "queue pair"),
                     budget.queue_pair_limit() > 0
                         ? fmt::format(" of the {} allotted",
                                       FormatCount(budget.queue_pair_limit()))
                         : "",
                     Count(budget.refusals(), "refusal")) +
         RenderPressure(budget);
}

}  // namespace purser::cli
