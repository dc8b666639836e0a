// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "cli/options.h"

namespace purser::cli {

CLI::App* AddPlan(CLI::App& app, PlanCommand& plan) {
  CLI::App* command = app.add_subcommand(
      "plan",
      "What a workload's queues will take: per queue pair, pod and node, what "
      "to request and to reserve. Asks no sidecar");
  AddWorkload(*command, plan);
  command
      ->add_flag("--all-providers", plan.all_providers,
                 "Every provider that the model knows, side by side (default "
                 "where the file names none)")
      ->excludes("--device")
      ->excludes("--provider");
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

}  // namespace purser::cli
