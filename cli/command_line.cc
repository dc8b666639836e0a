// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "cli/delivered.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/peer_channel.h"
#include "cli/ping_session.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

constexpr char kFooter[] =
    R"(Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by the budget or a limit
of the device, 4 no sidecar answers at the socket.
Environment: PURSER_SOCKET is the default of --socket.)";

// HOST:PORT, or for listening a port alone.
CLI::Validator Address(bool port_alone) {
  return CLI::Validator(
      [port_alone](std::string& text) -> std::string {
        const std::string address =
            port_alone && text.find(':') == std::string::npos ? "any:" + text
                                                              : text;
        auto host_port = SplitHostPort(address);
        if (!host_port.ok()) return std::string(host_port.status().message());
        uint32_t port = 0;
        if (!absl::SimpleAtoi(host_port->port, &port) || port > 65535 ||
            (port == 0 && !port_alone))
          return fmt::format("'{}' is no port", host_port->port);
        return {};
      },
      "");
}

// protobuf fields are set through functions, so options write here first.
struct Caps {
  uint32_t send_wr = 16, send_sge = 1, inline_data = 0, recv_wr = 16,
           recv_sge = 1;
  std::optional<uint32_t> least_send_wr, least_recv_wr;
  std::optional<v1::Capabilities> least() const {
    if (!least_send_wr && !least_recv_wr) return std::nullopt;
    v1::Capabilities least;
    least.set_max_send_wr(least_send_wr.value_or(send_wr));
    least.set_max_recv_wr(least_recv_wr.value_or(recv_wr));
    return least;
  }
  v1::Capabilities cap() const {
    v1::Capabilities cap;
    cap.set_max_send_wr(send_wr);
    cap.set_max_send_sge(send_sge);
    cap.set_max_inline_data(inline_data);
    cap.set_max_recv_wr(recv_wr);
    cap.set_max_recv_sge(recv_sge);
    return cap;
  }
};

void AddSendCap(CLI::App& app, Caps& caps) {
  app.add_option("--send-wr", caps.send_wr, "max_send_wr")
      ->capture_default_str();
  app.add_option("--send-sge", caps.send_sge, "max_send_sge")
      ->capture_default_str();
  app.add_option("--inline", caps.inline_data, "max_inline_data, bytes")
      ->capture_default_str();
}

void AddDevice(CLI::App& app, std::string& device) {
  app.add_option("--device", device,
                 "RDMA device, e.g. mlx5_0 (default: the sidecar's first)");
}

bool AnyCapacity(const CLI::App& app) {
  for (const char* option :
       {"--send-wr", "--send-sge", "--inline", "--recv-wr", "--recv-sge",
        "--least-send-wr", "--least-recv-wr"})
    if (app.count(option) > 0) return true;
  return false;
}

// In the words of `purser plan --send-op`.
void AddSendOps(CLI::App& app, std::vector<v1::SendOpcode>& operations) {
  app.add_option_function<std::vector<std::string>>(
         "--send-op",
         [&operations](const std::vector<std::string>& names) {
           for (const std::string& name : names) {
             if (name == "read") {
               operations.push_back(v1::SEND_OPCODE_RDMA_READ);
             } else if (name == "send") {
               operations.push_back(v1::SEND_OPCODE_SEND);
               operations.push_back(v1::SEND_OPCODE_SEND_WITH_IMM);
             } else {
               operations.push_back(v1::SEND_OPCODE_RDMA_WRITE);
               operations.push_back(v1::SEND_OPCODE_RDMA_WRITE_WITH_IMM);
             }
           }
         },
         "Will be posted, and nothing else: send, write or read; repeat it. "
         "None: anything")
      ->check(OneOf({"send", "write", "read"}))
      ->type_name("OPERATION");
}

CLI::App* AddCreate(CLI::App& qp, CreateCommand& create, Caps& caps) {
  CLI::App* app = qp.add_subcommand(
      "create",
      "Create queue pairs, say what they cost and hold them until Ctrl-C");
  app->add_option_function<std::string>(
         "--type",
         [&create](const std::string& name) {
           create.type = name == "uc"   ? v1::QUEUE_PAIR_TYPE_UC
                         : name == "ud" ? v1::QUEUE_PAIR_TYPE_UD
                                        : v1::QUEUE_PAIR_TYPE_RC;
         },
         "rc (default), uc or ud")
      ->check(OneOf({"rc", "uc", "ud"}))
      ->type_name("TYPE");
  AddSendCap(*app, caps);
  app->add_option("--recv-wr", caps.recv_wr, "max_recv_wr")
      ->capture_default_str();
  app->add_option("--recv-sge", caps.recv_sge, "max_recv_sge")
      ->capture_default_str();
  app->add_option("--count", create.count,
                  "How many; stops at the first refusal and keeps those before")
      ->check(CLI::Range(1u, 1'000'000u).description(""))
      ->capture_default_str();
  app->add_option("--class", create.class_name,
                  "Class of the sidecar's config; alone, without capacities, "
                  "its capacities are asked for (default: \"default\")");
  app->add_option("--least-send-wr", caps.least_send_wr,
                  "Take less than --send-wr where that does not fit, but at "
                  "least this");
  app->add_option("--least-recv-wr", caps.least_recv_wr,
                  "The same for --recv-wr");
  AddSendOps(*app, create.send_operations);
  app->add_option("--completion-queue", create.completion_queue,
                  "\"own\", or the name of one that all of this client share "
                  "that name it (default: whichever costs least)");
  app->add_option("--srq-wr", create.shared_receive_queue.max_wr,
                  "Receives from one shared receive queue for all, max_wr, "
                  "instead of --recv-wr");
  app->add_option("--srq-sge", create.shared_receive_queue.max_sge,
                  "Its max_sge")
      ->capture_default_str();
  AddDevice(*app, create.device);
  app->add_option("--name", create.name,
                  "Name of this client in logs and listings")
      ->capture_default_str();
  app->add_flag("--detach", create.detach,
                "Return at once; they stay until `purser qp destroy`");
  AddOutput(*app, create.output);
  return app;
}

CLI::App* AddFill(CLI::App& qp, FillCommand& fill, Caps& caps) {
  CLI::App* app = qp.add_subcommand(
      "fill",
      "Show how many posts a send queue takes: post to a peer without receives "
      "until it refuses");
  AddSendCap(*app, caps);
  AddDevice(*app, fill.device);
  app->add_option("--burst", fill.burst, "Posts in one call")
      ->check(CLI::Range(1u, 4096u).description(""))
      ->capture_default_str();
  return app;
}

CLI::App* AddPing(CLI::App& qp, PingCommand& ping) {
  CLI::App* app = qp.add_subcommand("ping",
                                    "Move data between queue pairs of two "
                                    "sidecars and verify it; run it with "
                                    "--listen on one side and with --connect "
                                    "on the other. Anyone who reaches "
                                    "the port may be the peer");
  CLI::Option* listen =
      app->add_option("--listen", ping.listen,
                      "Wait for the peer; 0: on a free port, which is printed")
          ->check(Address(true))
          ->type_name("[HOST:]PORT");
  CLI::Option* connect =
      app->add_option("--connect", ping.connect, "Connect to the peer")
          ->check(Address(false))
          ->type_name("HOST:PORT");
  connect->excludes(listen);
  app->add_option("--iterations", ping.iterations,
                  "Messages there and back, each verified")
      ->check(CLI::Range(uint64_t{0}, kMaxPingIterations).description(""))
      ->capture_default_str()
      ->needs(connect);
  app->add_option("--size", ping.message_bytes, "Of each message")
      ->transform(Bytes(1, kMaxPingMessageBytes))
      ->type_name("BYTES")
      ->capture_default_str()
      ->needs(connect);
  app->add_option("--bytes", ping.stream_bytes,
                  "Then stream so many bytes by RDMA WRITE, e.g. 64Mi")
      ->transform(Bytes(0, kMaxPingStreamBytes))
      ->type_name("BYTES")
      ->capture_default_str()
      ->needs(connect);
  app->add_option("--chunk", ping.chunk_bytes, "Of each RDMA WRITE")
      ->transform(Bytes(1, kMaxPingMessageBytes))
      ->type_name("BYTES")
      ->capture_default_str()
      ->needs(connect);
  AddDevice(*app, ping.device);
  AddSeconds(*app, "--timeout", ping.timeout,
             "Longest wait for the peer, at any step");
  return app;
}

}  // namespace

std::string Invocation::SharedVolume() const {
  if (!shared_volume.empty()) return shared_volume;
  const std::string directory =
      std::filesystem::path(socket).parent_path().string();
  return directory.empty() ? "." : directory;
}

bool Invocation::HoldsUntilSignal() const {
  if (std::holds_alternative<TopCommand>(command)) return true;
  const auto* create = std::get_if<CreateCommand>(&command);
  return create != nullptr && !create->detach;
}

std::optional<Invocation> ParseCommandLine(int argc, const char* const* argv,
                                           std::ostream& out, std::ostream& err,
                                           int* exit_code) {
  Invocation invocation;
  CreateCommand create;
  ListCommand list;
  DestroyCommand destroy;
  BudgetCommand budget;
  FillCommand fill;
  PingCommand ping;
  PlanCommand plan;
  NodeCommand node;
  CheckCommand check;
  TopCommand top;
  Caps create_caps, fill_caps;

  CLI::App app("RDMA queue pairs within the pod's budget of queue memory",
               "purser");
  app.set_version_flag("--version", std::string("purser ") + PURSER_VERSION);
  app.footer(kFooter);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("purser: {}\n  --help lists what there is\n",
                       error.what());
  });
  app.fallthrough();
  app.add_option("--socket", invocation.socket, "The sidecar's socket")
      ->envname("PURSER_SOCKET")
      ->capture_default_str();
  app.add_option("--shared-volume", invocation.shared_volume,
                 "Where the volume that is shared with the sidecar is mounted "
                 "(default: the socket's directory)");
  AddSeconds(app, "--rpc-timeout", invocation.rpc_timeout,
             "Longest wait for the sidecar's answer to a call");
  AddSeconds(app, "--wait", invocation.wait,
             "Longest wait for a sidecar that does not answer yet", 0);

  CLI::App* qp = app.add_subcommand("qp", "Queue pairs");
  qp->fallthrough();
  CLI::App* create_app = AddCreate(*qp, create, create_caps);
  CLI::App* list_app =
      qp->add_subcommand("list", "All queue pairs of the sidecar");
  AddOutput(*list_app, list.output);
  CLI::App* destroy_app = qp->add_subcommand(
      "destroy", "Destroy detached queue pairs (others end with their holder)");
  CLI::Option* all =
      destroy_app->add_flag("--all", destroy.all, "All that are detached");
  destroy_app->add_option("id", destroy.ids, "As `purser qp list` shows")
      ->excludes(all);
  CLI::App* ping_app = AddPing(*qp, ping);
  CLI::App* fill_app = AddFill(*qp, fill, fill_caps);
  CLI::App* budget_app = app.add_subcommand(
      "budget", "The budget, what bounds it, what is used and left");
  AddOutput(*budget_app, budget.output);
  CLI::App* top_app = AddTop(app, top);
  CLI::App* plan_app = AddPlan(app, plan);
  CLI::App* node_app = AddNode(app, node);
  CLI::App* check_app = AddCheck(app, check);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error, out, err) == 0 ? kOk : kUsage;
    *exit_code = Delivered(*exit_code, out, err);
    return std::nullopt;
  }
  if (ping_app->parsed() && !ping.listen && !ping.connect) {
    err << "purser: qp ping needs --listen PORT or --connect HOST:PORT\n";
    *exit_code = kUsage;
    return std::nullopt;
  }
  for (const std::string& fault :
       {WorkloadFault(*plan_app, plan), CheckFault(*check_app, check)}) {
    if (fault.empty()) continue;
    err << "purser: " << fault << '\n';
    *exit_code = kUsage;
    return std::nullopt;
  }
  if (destroy_app->parsed() && destroy.ids.empty() && !destroy.all) {
    err << "purser: qp destroy needs ids, or --all\n";
    *exit_code = kUsage;
    return std::nullopt;
  }
  if (qp->get_subcommands().empty() && !budget_app->parsed() &&
      !top_app->parsed() && !plan_app->parsed() && !check_app->parsed() &&
      !node_app->parsed()) {
    err << (qp->parsed() ? qp->help("purser") : app.help());
    *exit_code = kUsage;
    return std::nullopt;
  }
  create.least = create_caps.least();
  // A class's own capacities are what a request without any gets.
  if (create.class_name.empty() || AnyCapacity(*create_app))
    create.cap = create_caps.cap();
  fill.cap = fill_caps.cap();
  if (create_app->parsed()) invocation.command = create;
  if (list_app->parsed()) invocation.command = list;
  if (destroy_app->parsed()) invocation.command = destroy;
  if (ping_app->parsed()) invocation.command = ping;
  if (fill_app->parsed()) invocation.command = fill;
  if (budget_app->parsed()) invocation.command = budget;
  if (top_app->parsed()) invocation.command = top;
  if (plan_app->parsed()) invocation.command = plan;
  if (node_app->parsed()) invocation.command = node;
  if (check_app->parsed()) invocation.command = check;
  return invocation;
}

}  // namespace purser::cli
