// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/names.h"
#include "cli/render.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {

int List(const ListCommand& command, client::Client& client,
         Environment& environment) {
  auto queue_pairs = client.List();
  if (!queue_pairs.ok()) return Fail(queue_pairs.status(), environment);
  if (command.output == Output::kTable) {
    environment.out << RenderList(*queue_pairs);
    return kOk;
  }
  v1::ListQueuePairsResponse list;
  list.mutable_queue_pairs()->Add(queue_pairs->begin(), queue_pairs->end());
  environment.out << Json(list);
  return kOk;
}

int Destroy(const DestroyCommand& command, client::Client& client,
            Environment& environment) {
  int exit_code = kOk;
  for (const uint64_t id : command.ids) {
    auto returned = client.Destroy(id);
    if (returned.ok())
      environment.out << fmt::format("queue pair {} destroyed, {} returned\n",
                                     id, Bytes(*returned));
    else
      exit_code = Fail(returned.status(), environment);
  }
  return exit_code;
}

int Budget(const BudgetCommand& command, client::Client& client,
           Environment& environment) {
  auto budget = client.Budget();
  if (!budget.ok()) return Fail(budget.status(), environment);
  environment.out << (command.output == Output::kJson ? Json(*budget)
                                                      : RenderBudget(*budget));
  return kOk;
}

}  // namespace purser::cli
