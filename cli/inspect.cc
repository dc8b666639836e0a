// SPDX-License-Identifier: Apache-2.0
#include <vector>

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
  std::vector<uint64_t> ids = command.ids;
  if (command.all) {
    auto queue_pairs = client.List();
    if (!queue_pairs.ok()) return Fail(queue_pairs.status(), environment);
    for (const v1::QueuePair& queue_pair : *queue_pairs)
      if (queue_pair.detached()) ids.push_back(queue_pair.id());
  }
  int exit_code = kOk;
  uint64_t destroyed = 0, bytes = 0;
  for (const uint64_t id : ids) {
    auto returned = client.Destroy(id);
    if (!returned.ok()) {
      exit_code = Fail(returned.status(), environment);
      continue;
    }
    ++destroyed;
    bytes += *returned;
  }
  environment.out << fmt::format("{} destroyed, {} returned to the budget\n",
                                 Count(destroyed, "queue pair"), Bytes(bytes));
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
