// SPDX-License-Identifier: Apache-2.0
#include "cli/top_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/quantity.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "cli/names.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using base::FormatBytes;
using base::FormatCount;

std::string Percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format(
      "{:.1f}", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

// A line of one of the tables: what all that can be sorted have in common.
struct Row {
  std::string name;
  uint64_t memory = 0, queue_pairs = 0, backlog = 0;
  const v1::Traffic* traffic = nullptr;
  std::optional<double> posts_per_second;
  std::vector<std::string> cells;
};

// What had been posted at the look before, by who posted. Of those with equal
// names the oldest came first in both looks.
class Before {
 public:
  template <typename Items, typename Key>
  Before(const Items* items, Key key) {
    if (items == nullptr) return;
    for (const auto& item : *items)
      posts_[key(item)].push_back(item.traffic().posts());
  }
  // Posts since, in a second; nullopt where it was not there, or began anew.
  std::optional<double> Rate(const std::string& key, uint64_t posts,
                             double seconds) {
    const auto found = posts_.find(key);
    if (found == posts_.end() || found->second.empty() || seconds <= 0)
      return std::nullopt;
    const uint64_t then = found->second.front();
    found->second.erase(found->second.begin());
    if (posts < then) return std::nullopt;
    return static_cast<double>(posts - then) / seconds;
  }

 private:
  std::map<std::string, std::vector<uint64_t>> posts_;
};

std::string RateText(std::optional<double> rate) {
  if (!rate) return "-";
  return *rate < 10 && *rate > 0
             ? fmt::format("{:.1f}", *rate)
             : FormatCount(static_cast<uint64_t>(*rate + 0.5));
}

void Sort(std::vector<Row>& rows, TopOrder order) {
  const auto amount = [order](const Row& row) -> double {
    switch (order) {
      case TopOrder::kPosts:
        return row.posts_per_second.value_or(0);
      case TopOrder::kFailures:
        return static_cast<double>(row.traffic->post_failures());
      case TopOrder::kBacklog:
        return static_cast<double>(row.backlog);
      case TopOrder::kQueuePairs:
        return static_cast<double>(row.queue_pairs);
      case TopOrder::kMemory:
        return static_cast<double>(row.memory);
      case TopOrder::kName:
        break;
    }
    return 0;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return order == TopOrder::kName ? a.name < b.name : amount(a) > amount(b);
  });
}

std::string Table(const std::string& columns, std::vector<std::string> heading,
                  std::vector<Row> rows, TopOrder order) {
  if (rows.empty()) return "";
  Sort(rows, order);
  base::TextTable table(columns);
  table.Row(std::move(heading));
  for (Row& row : rows) table.Row(std::move(row.cells));
  return "\n" + table.Text();
}

// "3 d 04:05:06".
std::string Duration(uint64_t seconds) {
  const uint64_t days = seconds / 86400;
  return (days > 0 ? fmt::format("{} d ", days) : "") +
         fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24,
                     seconds / 60 % 60, seconds % 60);
}

double SecondsBetween(const Look& now, const Look* before) {
  return before == nullptr ? 0 : now.seconds - before->seconds;
}

std::string Clients(const Look& now, const Look* before, TopOrder order) {
  Before earlier(before ? &before->status.clients() : nullptr,
                 [](const v1::ClientStatus& c) { return c.name(); });
  const uint64_t used = Total(now.status.budget().used());
  std::vector<Row> rows;
  for (const v1::ClientStatus& client : now.status.clients()) {
    const v1::Traffic& traffic = client.traffic();
    Row row{.name = client.name(),
            .memory = Total(client.memory()),
            .queue_pairs = client.queue_pairs(),
            .backlog = client.completion_backlog(),
            .traffic = &traffic,
            .posts_per_second = earlier.Rate(client.name(), traffic.posts(),
                                             SecondsBetween(now, before))};
    row.cells = {base::EscapeText(client.name()),
                 FormatCount(client.queue_pairs()),
                 FormatBytes(row.memory),
                 Percent(row.memory, used),
                 RateText(row.posts_per_second),
                 FormatCount(traffic.posts()),
                 FormatCount(traffic.post_failures()),
                 FormatCount(traffic.completion_errors()),
                 FormatCount(row.backlog),
                 FormatCount(client.outstanding_sends()),
                 FormatCount(client.outstanding_receives()),
                 FormatCount(client.memory_regions()),
                 FormatBytes(client.registered_bytes()),
                 Duration(client.attached_seconds())};
    rows.push_back(std::move(row));
  }
  return Table(
      "lrrrrrrrrrrrrr",
      {"CLIENT", "QPS", "MEMORY", "%", "POST/S", "POSTS", "FAILED", "WC ERRORS",
       "BACKLOG", "SENDS", "RECVS", "MRS", "REGISTERED", "UP"},
      std::move(rows), order);
}

std::string Classes(const Look& now, const Look* before, TopOrder order) {
  Before earlier(before ? &before->status.classes() : nullptr,
                 [](const v1::ClassStatus& c) { return c.name(); });
  std::map<std::string, const v1::GetBudgetResponse::Class*> shares;
  for (const auto& share : now.status.budget().classes())
    shares[share.name()] = &share;
  const auto bytes = [](uint64_t value) {
    return value == 0 ? "-" : FormatBytes(value);
  };
  std::vector<Row> rows;
  for (const v1::ClassStatus& of : now.status.classes()) {
    const v1::Traffic& traffic = of.traffic();
    Row row{.name = of.name(),
            .memory = Total(of.memory()),
            .queue_pairs = of.queue_pairs(),
            .backlog = of.completion_backlog(),
            .traffic = &traffic,
            .posts_per_second = earlier.Rate(of.name(), traffic.posts(),
                                             SecondsBetween(now, before))};
    const auto share = shares.find(of.name());
    const bool known = share != shares.end();
    row.cells = {base::EscapeText(of.name()) +
                     (known && share->second->core() ? " (core)" : ""),
                 FormatCount(of.queue_pairs()),
                 FormatBytes(row.memory),
                 bytes(known ? share->second->floor_bytes() : 0),
                 bytes(known ? share->second->max_bytes() : 0),
                 RateText(row.posts_per_second),
                 FormatCount(traffic.posts()),
                 FormatCount(traffic.post_failures()),
                 FormatCount(row.backlog)};
    rows.push_back(std::move(row));
  }
  return Table("lrrrrrrrr",
               {"CLASS", "QPS", "MEMORY", "FLOOR", "MOST", "POST/S", "POSTS",
                "FAILED", "BACKLOG"},
               std::move(rows), order);
}

std::string CompletionQueues(const v1::GetStatusResponse& status) {
  if (status.completion_queues().empty()) return "";
  base::TextTable table("rllrrrr");
  table.Row({"SHARED CQ", "DEVICE", "CLIENT", "CQE", "SLOTS", "QPS", "MEMORY",
             "NAME"});
  for (const v1::CompletionQueue& queue : status.completion_queues())
    table.Row({std::to_string(queue.id()), queue.device(),
               base::EscapeText(queue.client_name()), FormatCount(queue.cqe()),
               FormatCount(queue.slots()), FormatCount(queue.queue_pairs()),
               FormatBytes(queue.memory().total_bytes()),
               base::EscapeText(queue.name())});
  return "\n" + table.Text();
}

std::string SharedReceiveQueues(const v1::GetStatusResponse& status) {
  if (status.shared_receive_queues().empty()) return "";
  base::TextTable table("rllrrrrr");
  table.Row(
      {"SRQ", "DEVICE", "CLIENT", "MAX_WR", "SLOTS", "RECVS", "QPS", "MEMORY"});
  for (const v1::SharedReceiveQueue& queue : status.shared_receive_queues())
    table.Row({std::to_string(queue.id()), queue.device(),
               base::EscapeText(queue.client_name()),
               FormatCount(queue.max_wr()), FormatCount(queue.slots()),
               FormatCount(queue.outstanding_receives()),
               FormatCount(queue.queue_pairs()),
               FormatBytes(queue.memory().total_bytes())});
  return "\n" + table.Text();
}

std::string QueuePairs(const Look& now, const Look* before, TopOrder order) {
  Before earlier(before ? &before->queue_pairs : nullptr,
                 [](const v1::QueuePair& q) { return std::to_string(q.id()); });
  std::vector<Row> rows;
  for (const v1::QueuePair& queue_pair : now.queue_pairs) {
    const v1::Traffic& traffic = queue_pair.traffic();
    const std::string id = std::to_string(queue_pair.id());
    Row row{.name = queue_pair.client_name(),
            .memory = queue_pair.memory().total_bytes(),
            .queue_pairs = 1,
            .backlog = queue_pair.completion_backlog(),
            .traffic = &traffic,
            .posts_per_second =
                earlier.Rate(id, traffic.posts(), SecondsBetween(now, before))};
    row.cells = {id,
                 std::to_string(queue_pair.qp_num()),
                 queue_pair.device(),
                 TypeName(queue_pair.type()),
                 StateName(queue_pair.state()),
                 FormatBytes(row.memory),
                 RateText(row.posts_per_second),
                 FormatCount(traffic.posts()),
                 FormatCount(traffic.post_failures()),
                 FormatCount(row.backlog),
                 FormatCount(queue_pair.outstanding_sends()),
                 FormatCount(queue_pair.outstanding_receives()),
                 base::EscapeText(queue_pair.client_name())};
    rows.push_back(std::move(row));
  }
  return Table("rrlllrrrrrrr",
               {"ID", "QP_NUM", "DEVICE", "TYPE", "STATE", "MEMORY", "POST/S",
                "POSTS", "FAILED", "BACKLOG", "SENDS", "RECVS", "CLIENT"},
               std::move(rows), order);
}

std::string Summary(const v1::GetStatusResponse& status) {
  const v1::GetBudgetResponse& budget = status.budget();
  std::string text = "budget  ";
  for (const auto& bound : budget.bounds())
    if (bound.binding())
      text += fmt::format("{} of {} used ({} %), bound: {}; ",
                          FormatBytes(bound.used_bytes()),
                          FormatBytes(bound.limit_bytes()),
                          Percent(bound.used_bytes(), bound.limit_bytes()),
                          SourceName(bound.source()));
  text += fmt::format(
      "{} left, {}{}, {}\n", FormatBytes(budget.headroom_bytes()),
      Count(budget.queue_pairs(), "queue pair"),
      budget.queue_pair_limit() > 0
          ? fmt::format(" of {}", FormatCount(budget.queue_pair_limit()))
          : "",
      Count(budget.refusals(), "refusal"));
  if (budget.overcommitted_bytes() > 0)
    text += fmt::format("        over-committed by {}: nothing grows\n",
                        FormatBytes(budget.overcommitted_bytes()));
  for (const v1::MemoryPressure& pressure : budget.memory_pressure())
    text += fmt::format("memory  {} {}{}\n", ScopeName(pressure.scope()),
                        PressureName(pressure.state()),
                        pressure.why().empty() ? "" : ": " + pressure.why());
  if (status.undestroyed_objects() > 0)
    text += fmt::format("        {} that the device refused to destroy\n",
                        Count(status.undestroyed_objects(), "object"));
  return text;
}

}  // namespace

std::string RenderTop(const Look& now, const Look* before, TopOrder order) {
  const std::string tables =
      Clients(now, before, order) + Classes(now, before, order) +
      CompletionQueues(now.status) + SharedReceiveQueues(now.status) +
      QueuePairs(now, before, order);
  return Summary(now.status) +
         (tables.empty() ? "\nno client is attached\n" : tables);
}

}  // namespace purser::cli
