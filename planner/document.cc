// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "planner/report.h"
#include "planner/send_operations.h"
#include "planner/yaml_writer.h"
#include "queue_memory/registry.h"

namespace purser::planner {
namespace {

using Json = nlohmann::ordered_json;
using queue_memory::QueueMemory;

Json TotalsJson(const Totals& totals) {
  return {{"queuePairs", totals.queue_pairs},
          {"totalBytes", totals.queues.total()},
          {"containerBytes", totals.queues.container},
          {"nodeBytes", totals.queues.node},
          {"contextBytes", totals.context},
          {"textbookBytes", totals.textbook}};
}

Json EachJson(const QueueMemory& each) {
  return {{"totalBytes", each.total().total()},
          {"containerBytes", each.total().container},
          {"nodeBytes", each.total().node},
          {"sendBytes", each.send.total()},
          {"receiveBytes", each.receive.total()},
          {"completionBytes", each.completion.total()},
          {"sharedReceiveBytes", each.shared_receive.total()},
          {"arraysBytes", each.arrays.total()},
          {"overheadBytes", each.overhead.total()},
          {"contextBytes", each.context.total()}};
}

Json GroupJson(const Workload& workload, const Group& group,
               const GroupPlan& planned) {
  const queue_memory::QueuePairRequest& request = group.request;
  Json json = {{"name", group.name},
               {"class", group.class_name},
               {"type", TypeName(request.type)},
               {"count", group.count},
               {"maxSendWr", request.max_send_wr},
               {"maxSendSge", request.max_send_sge},
               {"maxInlineData", request.max_inline_data},
               {"maxRecvWr", request.max_recv_wr},
               {"maxRecvSge", request.max_recv_sge}};
  if (group.shared_receive_queues.has_value())
    json["sharedReceiveQueue"] =
        workload.shared_receive_queues[*group.shared_receive_queues].name;
  if (group.completion_queues.has_value())
    json["completionQueue"] =
        workload.completion_queues[*group.completion_queues].name;
  json["refused"] = static_cast<bool>(planned.each.refusal);
  if (planned.each.refusal) return json;
  if (planned.cqe > 0) json["cqe"] = planned.cqe;
  json["sendSlots"] = planned.each.send_ring.slots;
  json["receiveSlots"] = planned.each.receive_ring.slots;
  json["writtenBack"] = {{"maxSendWr", planned.each.cap_send_wr},
                         {"maxSendSge", planned.each.cap_send_sge},
                         {"maxInlineData", planned.each.cap_inline_data},
                         {"maxRecvWr", planned.each.cap_recv_wr},
                         {"maxRecvSge", planned.each.cap_recv_sge}};
  json["exactness"] = ExactnessName(planned.each.exactness);
  json["each"] = EachJson(planned.each);
  json["all"] = TotalsJson(planned.all);
  return json;
}

Json QueuesJson(const std::string& name, const QueuesPlan& planned) {
  return {{"name", name},
          {"count", planned.count},
          {"entries", planned.entries},
          {"refused", static_cast<bool>(planned.each.refusal)},
          {"each", EachJson(planned.each)},
          {"all", TotalsJson(planned.all)}};
}

Json AskFor(const Plan& plan) {
  return {{"rdma/wqe-mib", plan.units()},
          {"memoryLimitMib", Mebibytes(plan.pod.queues.container)},
          {"nodeReserve",
           {{"recommended", "systemReserved"},
            {"systemReservedMib", Mebibytes(plan.node.node())},
            {"orRequestAndLimitMib", Mebibytes(plan.pod.node())}}}};
}

Json SavingsJson(const Report& report) {
  Json list = Json::array();
  for (const Saving& saving : report.neighbours.savings)
    list.push_back({{"group", saving.group},
                    {"argument", saving.argument},
                    {"from", saving.from},
                    {"to", saving.to},
                    {"bytes", saving.bytes}});
  return list;
}

void AddQueues(const Report& report, Json* json) {
  const Workload& workload = *report.planned;
  const Plan& plan = report.plan;
  for (const char* key :
       {"groups", "completionQueues", "sharedReceiveQueues", "classes"})
    (*json)[key] = Json::array();
  for (size_t i = 0; i < workload.groups.size(); ++i)
    (*json)["groups"].push_back(
        GroupJson(workload, workload.groups[i], plan.groups[i]));
  for (size_t i = 0; i < workload.completion_queues.size(); ++i)
    (*json)["completionQueues"].push_back(QueuesJson(
        workload.completion_queues[i].name, plan.completion_queues[i]));
  for (size_t i = 0; i < workload.shared_receive_queues.size(); ++i)
    (*json)["sharedReceiveQueues"].push_back(QueuesJson(
        workload.shared_receive_queues[i].name, plan.shared_receive_queues[i]));
  for (const ClassTotals& one : plan.classes)
    (*json)["classes"].push_back(
        {{"name", one.name}, {"pod", TotalsJson(one.pod)}});
}

Json PlanJson(const Report& report, bool with_queues) {
  Json json = {{"device", report.device.name},
               {"provider", queue_memory::ProviderName(report.device.provider)},
               {"what", report.device.what}};
  if (!report.status.ok()) {
    json["error"] = std::string(report.status.message());
    return json;
  }
  const Plan& plan = report.plan;
  json["exactness"] = ExactnessName(plan.exactness);
  json["askFor"] = AskFor(plan);
  json["pod"] = TotalsJson(plan.pod);
  json["node"] = TotalsJson(plan.node);
  if (with_queues) AddQueues(report, &json);
  json["refusals"] = Json::array();
  for (const Refusal& refusal : plan.refusals)
    json["refusals"].push_back(
        {{"where", refusal.where}, {"text", refusal.text}});
  json["savings"] = SavingsJson(report);
  json["sameCost"] = Json::array();
  for (const SameCost& same : report.neighbours.same_cost)
    json["sameCost"].push_back({{"group", same.group},
                                {"argument", same.argument},
                                {"asked", same.asked},
                                {"most", same.most}});
  json["warnings"] = plan.warnings;
  return json;
}

Json Document(std::span<const Report> reports) {
  Json json;
  if (reports.empty()) return json;
  const Report& first = reports[0];
  json["workload"] = first.asked->name;
  json["podsPerNode"] = first.asked->pods_per_node;
  if (first.budget.has_value()) json["fitBytes"] = *first.budget;
  json["plans"] = Json::array();
  for (const Report& report : reports)
    json["plans"].push_back(PlanJson(report, reports.size() == 1));
  return json;
}

}  // namespace

// Names are plain; where a path in a refusal is no UTF-8, it is replaced.
std::string RenderJson(std::span<const Report> reports) {
  return Document(reports).dump(2, ' ', false, Json::error_handler_t::replace) +
         '\n';
}

std::string RenderYaml(std::span<const Report> reports) {
  return ToYaml(Document(reports));
}

}  // namespace purser::planner
