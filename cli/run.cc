// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <chrono>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/delivered.h"
#include "cli/exit_code.h"
#include "cli/render.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string ClientName(const Invocation& invocation) {
  if (std::holds_alternative<TopCommand>(invocation.command))
    return kTopClientName;
  const auto* create = std::get_if<CreateCommand>(&invocation.command);
  return create != nullptr ? create->name : "purser";
}

// Nothing tells when a sidecar begins to serve.
constexpr std::chrono::milliseconds kRetry{50};

bool MayCome(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<std::unique_ptr<client::Client>> Connect(
    const Invocation& invocation) {
  const auto deadline = std::chrono::steady_clock::now() + invocation.wait;
  for (;;) {
    auto client =
        client::Client::Connect(invocation.socket, ClientName(invocation),
                                {.rpc_timeout = invocation.rpc_timeout});
    if (!MayCome(client.status()) ||
        std::chrono::steady_clock::now() + kRetry > deadline)
      return client;
    std::this_thread::sleep_for(kRetry);
  }
}

int Dispatch(const Invocation& invocation, Environment& environment) {
  if (const auto* plan = std::get_if<PlanCommand>(&invocation.command))
    return Plan(*plan, environment);
  if (const auto* node = std::get_if<NodeCommand>(&invocation.command))
    return Node(*node, environment);
  if (const auto* check = std::get_if<CheckCommand>(&invocation.command))
    return Check(*check, environment);
  auto client = Connect(invocation);
  if (MayCome(client.status())) {
    (void)Fail(client.status(), environment);
    environment.err << "  another socket: --socket PATH or PURSER_SOCKET\n";
    return kNoSidecar;
  }
  if (!client.ok()) return Fail(client.status(), environment);
  if (const auto* top = std::get_if<TopCommand>(&invocation.command))
    return Top(
        *top, [&] { return Connect(invocation); }, *std::move(client),
        environment);
  return std::visit(
      Overloaded{
          [&](const CreateCommand& c) {
            return Create(c, **client, environment);
          },
          [&](const ListCommand& c) { return List(c, **client, environment); },
          [&](const DestroyCommand& c) {
            return Destroy(c, **client, environment);
          },
          [&](const BudgetCommand& c) {
            return Budget(c, **client, environment);
          },
          [&](const FillCommand& c) {
            return Fill(c, invocation.SharedVolume(), **client, environment);
          },
          [&](const PingCommand& c) {
            return Ping(c, invocation.SharedVolume(), **client, environment);
          },
          [&](const PlanCommand& c) { return Plan(c, environment); },
          [&](const CheckCommand& c) { return Check(c, environment); },
          [&](const NodeCommand& c) { return Node(c, environment); },
          [&](const TopCommand&) { return int{kOk}; }},
      invocation.command);
}

}  // namespace

int Fail(const absl::Status& status, Environment& environment) {
  const std::string message(status.message());
  if (auto refusal = client::RefusalOf(status))
    environment.err << RenderRefusal(*refusal, message);
  else
    environment.err << fmt::format(
        "purser: {}\n", message.empty() ? status.ToString() : message);
  return ExitCodeOf(status);
}

int Run(const Invocation& invocation, Environment& environment) {
  return Delivered(Dispatch(invocation, environment), environment.out,
                   environment.err);
}

int Delivered(int exit_code, std::ostream& out, std::ostream& err) {
  if (out.flush()) return exit_code;
  err << "purser: cannot write the results to standard output: is it closed, "
         "or its disk full?\n";
  return exit_code == kOk ? kFailure : exit_code;
}

}  // namespace purser::cli
