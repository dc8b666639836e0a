// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

namespace purser::cli {

CLI::App* AddCheck(CLI::App& app, CheckCommand& check) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Pre-flight: will a workload's queues be had on this device and machine? "
      "One line for each limit and rule. Asks no sidecar");
  AddWorkload(*command, check);
  command
      ->add_option("--buffer", check.buffers,
                   "Buffers that will be registered, e.g. 64Mix8@4096: 8 of 64 "
                   "MiB, aligned to 4096 (default 16, as malloc); repeat it")
      ->type_name("BYTES[xCOUNT][@ALIGNMENT]");
  command->add_flag("--huge-pages", check.huge_pages,
                    "Those buffers lie in huge pages");
  command
      ->add_option("--budget", check.budget, "The pod's budget of queue memory")
      ->envname("PURSER_QUEUE_MEMORY_BYTES")
      ->transform(Bytes(1, INT64_MAX))
      ->type_name("BYTES");
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

}  // namespace purser::cli
