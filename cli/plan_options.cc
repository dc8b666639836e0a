// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "cli/options.h"
#include "planner/workload.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

constexpr char kGroup[] = "One group of queue pairs, instead of a file";

void AddGroup(CLI::App& app, PlanCommand& plan) {
  const auto number = [&](const std::string& name, uint32_t& target,
                          uint32_t min, uint32_t max, const std::string& help) {
    app.add_option(name, target, help)
        ->check(CLI::Range(min, max).description(""))
        ->capture_default_str()
        ->group(kGroup);
  };
  queue_memory::QueuePairRequest& request = plan.group.request;
  number("--count", plan.group.count, 1, planner::kMostQueuePairs,
         "Queue pairs");
  app.add_option("--type", plan.type,
                 "rc (default), uc, ud, xrc_send, raw_packet, dci or srd")
      ->group(kGroup);
  number("--send-wr", request.max_send_wr, 0, planner::kMostDepth,
         "max_send_wr");
  number("--send-sge", request.max_send_sge, 0, planner::kMostSge,
         "max_send_sge");
  number("--inline", request.max_inline_data, 0, planner::kMostInlineData,
         "max_inline_data, bytes");
  number("--recv-wr", request.max_recv_wr, 0, planner::kMostDepth,
         "max_recv_wr");
  number("--recv-sge", request.max_recv_sge, 0, planner::kMostSge,
         "max_recv_sge");
  app.add_option("--send-op", plan.send_ops,
                 "Will be posted: send, write, read, atomic, bind, invalidate "
                 "or inline-write; repeat it. None: what ibv_create_qp implies")
      ->type_name("OPERATION")
      ->group(kGroup);
  number("--srq-wr", plan.shared_receive_queue.max_wr, 1, planner::kMostDepth,
         "Receives of one shared receive queue instead, max_wr");
  number("--srq-sge", plan.shared_receive_queue.max_sge, 1, planner::kMostSge,
         "Its max_sge");
  app.add_flag("--shared-cq", plan.shared_cq,
               "One completion queue for all queue pairs (default: each its "
               "own)")
      ->group(kGroup);
}

void AddDevices(CLI::App& app, PlanCommand& plan) {
  CLI::Option* device =
      app.add_option("--device", plan.device,
                     "RDMA device of this machine, e.g. mlx5_0: its limits");
  CLI::Option* provider =
      app.add_option("--provider", plan.provider,
                     "Provider, kernel driver or profile, e.g. mlx5")
          ->excludes(device);
  app.add_flag("--all-providers", plan.all_providers,
               "Every provider that the model knows, side by side (default "
               "where the file names none)")
      ->excludes(device)
      ->excludes(provider);
  app.add_option("--limit", plan.limits,
                 "Limit of that device or provider, e.g. maxQpWr=16384; repeat "
                 "it")
      ->type_name("NAME=NUMBER");
}

}  // namespace

CLI::App* AddPlan(CLI::App& app, PlanCommand& plan) {
  CLI::App* command = app.add_subcommand(
      "plan",
      "What a workload's queues will take: per queue pair, pod and node, what "
      "to request and to reserve. Asks no sidecar");
  command
      ->add_option("workload", plan.file,
                   "YAML file, -: stdin (docs/planning.md)")
      ->type_name("FILE");
  AddGroup(*command, plan);
  AddDevices(*command, plan);
  command->add_option("--pods", plan.pods_per_node, "Such pods on a node")
      ->check(CLI::Range(1u, planner::kMostPodsPerNode).description(""));
  command
      ->add_option("--fit", plan.fit,
                   "Find the largest depths whose queues fit into this")
      ->transform(Bytes(1, INT64_MAX))
      ->type_name("BYTES");
  command
      ->add_option("--plot", plan.plot,
                   "Draw queue memory against depth into this SVG file")
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "-o,--output",
          [&plan](const std::string& name) {
            plan.output = name == "json"   ? Output::kJson
                          : name == "yaml" ? Output::kYaml
                                           : Output::kTable;
          },
          "table (default), json or yaml")
      ->check(OneOf({"table", "json", "yaml"}))
      ->type_name("FORMAT");
  return command;
}

std::string PlanFault(const CLI::App& app, const PlanCommand& plan) {
  for (const CLI::Option* option : app.get_options())
    if (!plan.file.empty() && option->get_group() == kGroup &&
        option->count() > 0)
      return fmt::format(
          "plan takes a file or {}, not both: {} has its own groups",
          option->get_name(), plan.file);
  const bool shared = app.count("--srq-wr") > 0;
  for (const char* option : {"--recv-wr", "--recv-sge"})
    if (shared && app.count(option) > 0)
      return fmt::format(
          "--srq-wr contradicts {}: a shared receive queue has the receives",
          option);
  if (!shared && app.count("--srq-sge") > 0) return "--srq-sge needs --srq-wr";
  return "";
}

}  // namespace purser::cli
