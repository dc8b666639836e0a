// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "cli/options.h"
#include "cli/request.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {

CLI::App* AddCheck(CLI::App& app, CheckCommand& check) {
  CLI::App* command = AddWorkloadCommand(
      app, check, "check",
      "Pre-flight: will a workload's queues be had on this device and machine? "
      "One line for each limit and rule. Asks no sidecar");
  command
      ->add_option("--buffer", check.buffers,
                   "Buffers that will be registered, e.g. 64Mix8@4096: 8 of 64 "
                   "MiB, aligned to 4096 (default 16, as malloc); repeat it")
      ->type_name("BYTES[xCOUNT][@ALIGNMENT]");
  command->add_flag("--huge-pages", check.huge_pages,
                    "Those buffers lie in huge pages");
  AddBytes(*command, "--budget", check.budget,
           "The pod's budget of queue memory")
      ->envname("PURSER_QUEUE_MEMORY_BYTES");
  CLI::Option* strict =
      command->add_flag("--strict", check.strict, "Warnings are failures, too");
  CLI::Option* explain =
      command
          ->add_option("--explain", check.explain,
                       "Why did ibv_create_qp fail? EINVAL, ENOMEM, EPERM, "
                       "EOPNOTSUPP, EAGAIN or ENOSPC")
          ->type_name("ERRNO")
          ->excludes(strict)
          ->excludes("workload");
  command
      ->add_option("--request", check.request,
                   "What was asked, e.g. "
                   "type=rc,send-wr=4096,send-sge=8,inline=0,recv-wr=256,"
                   "recv-sge=1; or by the options above")
      ->type_name("NAME=VALUE,…")
      ->needs(explain);
  AddOutput(*command, check.output);
  return command;
}

std::string CheckFault(const CLI::App& app, const CheckCommand& check) {
  if (std::string fault = WorkloadFault(app, check); !fault.empty())
    return fault;
  if (!check.explain.empty() && check.request.empty() && !GivesGroup(app))
    return "--explain needs what was asked: by --request, or by options such "
           "as --send-wr";
  const std::string name = GivenTwice(
      check.request,
      [&app](std::string_view option) { return IsGiven(app, option); });
  return name.empty() ? ""
                      : fmt::format(
                            "--request and --{0} both say {0}: remove "
                            "one",
                            name);
}

}  // namespace purser::cli
