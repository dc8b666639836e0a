// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

namespace purser::cli {

CLI::App* AddPlan(CLI::App& app, PlanCommand& plan) {
  CLI::App* command = AddWorkloadCommand(
      app, plan, "plan",
      "What a workload's queues will take: per queue pair, pod and node, what "
      "to request and to reserve. Asks no sidecar");
  command
      ->add_flag("--all-providers", plan.all_providers,
                 "Every provider that the model knows, side by side (default "
                 "where the file names none)")
      ->excludes("--device")
      ->excludes("--provider");
  AddBytes(*command, "--fit", plan.fit,
           "Find the largest depths whose queues fit into this");
  command
      ->add_option("--plot", plan.plot,
                   "Draw queue memory against depth into this SVG file")
      ->type_name("FILE");
  AddOutput(*command, plan.output, {"table", "json", "yaml"});
  return command;
}

}  // namespace purser::cli
