// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "cli/options.h"
#include "cli/request.h"
#include "planner/workload.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

constexpr char kGroup[] = "One group of queue pairs, instead of a file";

void AddGroup(CLI::App& app, WorkloadSource& source) {
  const auto number = [&](const std::string& name, uint32_t& target,
                          uint32_t min, uint32_t max, const std::string& help) {
    app.add_option(name, target, help)
        ->check(CLI::Range(min, max).description(""))
        ->capture_default_str()
        ->group(kGroup);
  };
  queue_memory::QueuePairRequest& request = source.group.request;
  number("--count", source.group.count, 1, planner::kMostQueuePairs,
         "Queue pairs");
  app.add_option("--type", source.type,
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
  app.add_option("--send-op", source.send_ops,
                 "Will be posted: send, write, read, atomic, bind, invalidate "
                 "or inline-write; repeat it. None: what ibv_create_qp implies")
      ->type_name("OPERATION")
      ->group(kGroup);
  number("--srq-wr", source.shared_receive_queue.max_wr, 1, planner::kMostDepth,
         "Receives of one shared receive queue instead, max_wr");
  number("--srq-sge", source.shared_receive_queue.max_sge, 1, planner::kMostSge,
         "Its max_sge");
  app.add_flag("--shared-cq", source.shared_cq,
               "One completion queue for all queue pairs (default: each its "
               "own)")
      ->group(kGroup);
}

void AddDevices(CLI::App& app, WorkloadSource& source) {
  CLI::Option* device =
      app.add_option("--device", source.device,
                     "RDMA device of this machine, e.g. mlx5_0: its limits");
  app.add_option("--provider", source.provider,
                 "Provider, kernel driver or profile, e.g. mlx5")
      ->excludes(device);
  app.add_option("--kernel-version", source.kernel_version,
                 "Linux of that device or provider, e.g. 6.1 (default: the "
                 "running one for --device, a current one for --provider)")
      ->type_name("VERSION");
  app.add_option("--limit", source.limits,
                 "Limit of that device or provider, e.g. maxQpWr=16384; repeat "
                 "it")
      ->type_name("NAME=NUMBER");
}

}  // namespace

CLI::App* AddWorkloadCommand(CLI::App& app, WorkloadSource& source,
                             const std::string& name, const std::string& help) {
  CLI::App* command = app.add_subcommand(name, help);
  command
      ->add_option("workload", source.file,
                   "YAML file, -: stdin (docs/planning.md); or one group by "
                   "the options below")
      ->type_name("FILE");
  AddGroup(*command, source);
  AddDevices(*command, source);
  command->add_option("--pods", source.pods_per_node, "Such pods on a node")
      ->check(CLI::Range(1u, planner::kMostPodsPerNode).description(""));
  return command;
}

bool IsGiven(const CLI::App& app, std::string_view name) {
  const auto* option = app.get_option_no_throw(fmt::format("--{}", name));
  return option != nullptr && option->count() > 0;
}

bool GivesGroup(const CLI::App& app) {
  const auto& options = app.get_options();
  return std::any_of(
      options.begin(), options.end(), [](const CLI::Option* option) {
        return option->get_group() == kGroup && option->count() > 0;
      });
}

std::string WorkloadFault(const CLI::App& app, const WorkloadSource& source) {
  for (const CLI::Option* option : app.get_options())
    if (!source.file.empty() && option->get_group() == kGroup &&
        option->count() > 0)
      return fmt::format(
          "{} takes a file or {}, not both: {} has its own groups",
          app.get_name(), option->get_name(), source.file);
  const auto given = [&app](std::string_view name) {
    return IsGiven(app, name);
  };
  if (std::string fault = Contradiction(source.type, given, "--");
      !fault.empty())
    return fault;
  const queue_memory::QueuePairRequest& request = source.group.request;
  if (request.max_send_wr == 0 && request.max_recv_wr == 0 && !given("srq-wr"))
    return "--send-wr 0 and --recv-wr 0: such a queue pair does nothing";
  return "";
}

}  // namespace purser::cli
