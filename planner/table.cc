// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "base/quantity.h"
#include "base/text_table.h"
#include "planner/report.h"
#include "planner/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatBytes;
using base::FormatCount;
using base::TextTable;

constexpr size_t kMostGroups = 30;

std::string SendSide(const queue_memory::QueuePairRequest& request) {
  const std::string text =
      fmt::format("{} x {}", request.max_send_wr, request.max_send_sge);
  if (request.max_inline_data == 0) return text;
  return fmt::format("{}, {} B", text, request.max_inline_data);
}

std::string ReceiveSide(const Workload& workload, const Group& group) {
  if (group.shared_receive_queues.has_value())
    return workload.shared_receive_queues[*group.shared_receive_queues].name;
  if (group.request.max_recv_wr == 0) return "-";
  return fmt::format("{} x {}", group.request.max_recv_wr,
                     group.request.max_recv_sge);
}

std::string Times(uint64_t bytes, uint64_t textbook) {
  if (textbook == 0) return "-";
  return fmt::format(
      "{:.1f}x", static_cast<double>(bytes) / static_cast<double>(textbook));
}

class Table {
 public:
  explicit Table(const Report& report)
      : report_(report),
        workload_(*report.planned),
        plan_(report.plan),
        has_classes_(!report.plan.classes.empty()),
        fitted_(report.budget.has_value()) {}

  std::string Text() {
    Head();
    Groups();
    SharedQueues();
    // Of nothing there are no sums.
    if (plan_.pod.queue_pairs == 0) return text_;
    Sums();
    ToAskFor();
    Savings();
    SameCost();
    Warnings();
    return text_;
  }

 private:
  void Head() {
    text_ += fmt::format(
        "{}{}{}\n", workload_.name.empty() ? "" : workload_.name + " on ",
        plan_.device.name,
        plan_.device.what.empty() ? ""
                                  : fmt::format(" ({})", plan_.device.what));
    if (fitted_)
      text_ += fmt::format(
          "the largest depths with which a pod's queues fit into {}, in the "
          "proportions that were asked for, as far as limits allow\n",
          FormatBytes(*report_.budget));
    text_ += '\n';
  }

  // The largest, in the workload's order.
  std::vector<size_t> Shown() const {
    std::vector<size_t> order(plan_.groups.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (order.size() <= kMostGroups) return order;
    const auto end = order.begin() + kMostGroups;
    std::partial_sort(order.begin(), end, order.end(), [&](size_t a, size_t b) {
      return plan_.groups[a].all.queues.total() >
             plan_.groups[b].all.queues.total();
    });
    order.erase(end, order.end());
    std::sort(order.begin(), order.end());
    return order;
  }

  void Groups() {
    TextTable table(has_classes_ ? "lllrllrrrrrrrr" : "llrllrrrrrrrr");
    Row(table, "CLASS", "ASKED",
        {"GROUP", "TYPE", "COUNT", "SEND", "RECEIVE", "HOLDS", "SEND RING",
         "RECV RING", "CQ", "REST", "EACH", "TEXTBOOK", "ALL"});
    const std::vector<size_t> shown = Shown();
    for (const size_t index : shown) GroupRow(table, index);
    text_ += table.Text();
    if (shown.size() < plan_.groups.size())
      text_ += fmt::format("and {} smaller groups; -o json has them all\n",
                           FormatCount(plan_.groups.size() - shown.size()));
    text_ += '\n';
  }

  void Row(TextTable& table, const std::string& class_name,
           const std::string& asked, std::vector<std::string> cells) const {
    if (fitted_) cells.insert(cells.begin() + 3, asked);
    if (has_classes_) cells.insert(cells.begin() + 1, class_name);
    table.Row(std::move(cells));
  }

  void GroupRow(TextTable& table, size_t index) const {
    const Group& group = workload_.groups[index];
    const GroupPlan& planned = plan_.groups[index];
    const queue_memory::QueueMemory& each = planned.each;
    const std::string type =
        absl::AsciiStrToUpper(TypeName(group.request.type));
    const auto& asked = report_.asked->groups[index].request;
    const std::string asked_depths =
        fmt::format("{}/{}", asked.max_send_wr, asked.max_recv_wr);
    std::vector<std::string> cells = {
        group.name, type, FormatCount(group.count), SendSide(group.request),
        ReceiveSide(workload_, group)};
    if (each.refusal) {
      cells.push_back("refused");
    } else {
      const uint64_t textbook = planned.all.textbook / group.count;
      for (std::string& cell : std::vector<std::string>{
               fmt::format("{}/{}", each.send_ring.slots,
                           each.receive_ring.slots),
               FormatCount(each.send.total()),
               FormatCount(each.receive.total()),
               group.completion_queues.has_value()
                   ? "shared"
                   : FormatCount(each.completion.total()),
               FormatCount((each.arrays + each.overhead).total()),
               FormatCount(each.total().total()), FormatCount(textbook),
               FormatBytes(planned.all.queues.total())})
        cells.push_back(std::move(cell));
    }
    Row(table, group.class_name.empty() ? "-" : group.class_name, asked_depths,
        std::move(cells));
  }

  void SharedQueues() {
    const auto& completion = workload_.completion_queues;
    const auto& shared = workload_.shared_receive_queues;
    if (completion.empty() && shared.empty()) return;
    TextTable table("llrrrr");
    table.Row({"SHARED", "", "COUNT", "ENTRIES", "EACH", "ALL"});
    for (size_t i = 0; i < std::min(completion.size(), kMostGroups); ++i)
      QueuesRow(table, completion[i].name, "completion queue",
                plan_.completion_queues[i], "");
    for (size_t i = 0; i < std::min(shared.size(), kMostGroups); ++i)
      QueuesRow(table, shared[i].name, "shared receive queue",
                plan_.shared_receive_queues[i],
                fmt::format(" x {}", shared[i].request.max_sge));
    text_ += table.Text() + '\n';
  }

  static void QueuesRow(TextTable& table, const std::string& name,
                        const std::string& kind, const QueuesPlan& planned,
                        const std::string& sges) {
    table.Row({name, kind, FormatCount(planned.count),
               FormatCount(planned.entries) + sges,
               planned.each.refusal ? "refused"
                                    : FormatCount(planned.each.total().total()),
               FormatBytes(planned.all.queues.total())});
  }

  void Sums() {
    TextTable table("lrrrrrr");
    table.Row({"SUM", "QUEUE PAIRS", "QUEUES", "CONTAINER", "NODE", "CONTEXT",
               "TEXTBOOK", ""});
    for (size_t i = 0; i < std::min(plan_.classes.size(), kMostGroups); ++i)
      SumRow(table,
             plan_.classes[i].name.empty() ? "no class"
                                           : "class " + plan_.classes[i].name,
             plan_.classes[i].pod);
    SumRow(table, "pod", plan_.pod);
    SumRow(table,
           fmt::format("node, {} pod{}", workload_.pods_per_node,
                       workload_.pods_per_node == 1 ? "" : "s"),
           plan_.node);
    text_ += table.Text();
    if (!plan_.complete()) text_ += "without what the device refuses\n";
    text_ += '\n';
  }

  static void SumRow(TextTable& table, const std::string& name,
                     const Totals& totals) {
    table.Row({name, FormatCount(totals.queue_pairs),
               FormatBytes(totals.queues.total()),
               FormatBytes(totals.queues.container),
               FormatBytes(totals.queues.node), FormatBytes(totals.context),
               FormatBytes(totals.textbook),
               Times(totals.queues.total(), totals.textbook)});
  }

  void ToAskFor() {
    const bool node_pays = plan_.pod.queues.node > 0;
    const uint64_t node = Mebibytes(plan_.node.node());
    TextTable table("lll");
    table.Row({"request", fmt::format("rdma/wqe-mib: {}", plan_.units()),
               "the budget of a pod's queues, in MiB"});
    table.Row(
        {"limit",
         fmt::format("memory: +{}Mi", Mebibytes(plan_.pod.queues.container)),
         "charged to the container that creates the queues"});
    table.Row({"node", fmt::format("{}Mi", node),
               fmt::format("charged to nobody: {}kernel objects and the "
                           "adapter's context (estimated), of all its pods",
                           node_pays ? "queues, " : "")});
    table.Row({"  recommended", fmt::format("+{}Mi", node),
               fmt::format("in the kubelet's systemReserved{}",
                           node_pays ? "; at least all rdma/wqe-mib that the "
                                       "node advertises"
                                     : "")});
    table.Row({"  or instead",
               fmt::format("+{}Mi", Mebibytes(plan_.pod.node())),
               "in request and limit of a container of each pod, whose limit "
               "that loosens"});
    text_ += table.Text();
  }

  void Savings() {
    if (report_.neighbours.savings.empty()) return;
    text_ += "\nsavings, each by itself\n";
    TextTable table("llrlrl", 2);
    for (const Saving& saving : report_.neighbours.savings)
      table.Row({saving.group, saving.argument, saving.from, "-> " + saving.to,
                 FormatBytes(saving.bytes),
                 fmt::format("of {}", FormatBytes(plan_.pod.queues.total()))});
    text_ += table.Text();
  }

  void SameCost() {
    if (report_.neighbours.same_cost.empty()) return;
    text_ += "\nfor the same, each by itself\n";
    TextTable table("llrl", 2);
    for (const auto& [group, argument, asked, most] :
         report_.neighbours.same_cost)
      table.Row({group, argument, FormatCount(asked),
                 fmt::format("-> {}", FormatCount(most))});
    text_ += table.Text();
  }

  void Warnings() {
    if (!plan_.warnings.empty()) text_ += '\n';
    for (const std::string& warning : plan_.warnings)
      text_ += fmt::format("warning: {}\n", warning);
  }

  const Report& report_;
  const Workload& workload_;
  const Plan& plan_;
  const bool has_classes_, fitted_;
  std::string text_;
};

}  // namespace

std::string RenderTable(const Report& report) { return Table(report).Text(); }

}  // namespace purser::planner
