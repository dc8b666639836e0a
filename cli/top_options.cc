// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "cli/options.h"

namespace purser::cli {

CLI::App* AddTop(CLI::App& app, TopCommand& top) {
  static const std::map<std::string, TopOrder> kOrders = {
      {"memory", TopOrder::kMemory},     {"posts", TopOrder::kPosts},
      {"failures", TopOrder::kFailures}, {"backlog", TopOrder::kBacklog},
      {"qps", TopOrder::kQueuePairs},    {"name", TopOrder::kName}};
  CLI::App* command = app.add_subcommand(
      "top",
      "Clients, classes and shared queues of the sidecar as they develop: "
      "memory, posts, failures, completions that are not fetched, pressure");
  AddSeconds(*command, "--interval", top.interval, "Between two looks", 0.1);
  command
      ->add_option("-n,--iterations", top.iterations,
                   "Looks (default: until Ctrl-C on a terminal, else one)")
      ->check(CLI::Range(1u, 1'000'000'000u).description(""));
  command
      ->add_option_function<std::string>(
          "--sort",
          [&top](const std::string& name) { top.order = kOrders.at(name); },
          "memory (default), posts (a second), failures, backlog, qps or name")
      ->check(OneOf({"memory", "posts", "failures", "backlog", "qps", "name"}))
      ->type_name("COLUMN");
  command->add_flag("--queue-pairs", top.queue_pairs,
                    "Each queue pair, too (table)");
  AddOutput(*command, top.output);
  return command;
}

}  // namespace purser::cli
