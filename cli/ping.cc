// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <random>
#include <thread>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/tcp_listener.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/names.h"
#include "cli/peer_channel.h"
#include "cli/ping_report.h"
#include "cli/ping_session.h"
#include "cli/wire.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using std::chrono::milliseconds;

// A peer that connects and then says nothing does not keep others out for long.
constexpr milliseconds kHelloTimeout{5000};
// Nothing tells when another machine's port is opened.
constexpr milliseconds kRetry{100};

uint32_t RandomPsn() { return std::random_device()() & 0xffffff; }

v1::PingPlan PlanOf(const PingCommand& command) {
  v1::PingPlan plan;
  plan.set_seed(uint64_t{std::random_device()()} << 32 |
                std::random_device()());
  plan.set_message_bytes(command.message_bytes);
  plan.set_iterations(command.iterations);
  plan.set_stream_bytes(command.stream_bytes);
  plan.set_chunk_bytes(command.chunk_bytes);
  plan.set_window_chunks(kPingWindowChunks);
  return plan;
}

// What one side has of its own.
struct Side {
  client::QueuePair queue_pair;
  client::SharedRegion region;
  uint32_t psn = RandomPsn();
};

absl::StatusOr<Side> CreateSide(const std::string& device,
                                const std::string& shared_volume,
                                const v1::PingPlan& plan,
                                client::Client& client) {
  client::QueuePairSpec spec;
  spec.device = device;
  spec.cap.set_max_send_wr(plan.window_chunks());
  spec.cap.set_max_send_sge(1);
  spec.cap.set_max_recv_wr(plan.window_chunks());
  spec.cap.set_max_recv_sge(1);
  spec.send_operations = {v1::SEND_OPCODE_SEND,
                          v1::SEND_OPCODE_RDMA_WRITE_WITH_IMM};
  PURSER_ASSIGN_OR_RETURN(client::QueuePair queue_pair,
                          client.CreateQueuePair(spec));
  PURSER_ASSIGN_OR_RETURN(
      client::SharedRegion region,
      client::SharedRegion::Create(
          client, shared_volume, PingLayout(plan).bytes(),
          client::kLocalWrite | client::kRemoteWrite, device));
  return Side{std::move(queue_pair), std::move(region)};
}

// The plan's execution ended on this side: tells the peer, hears its result.
absl::StatusOr<PingReport> Conclude(const v1::PingPlan& plan, bool connecting,
                                    const PingOutcome& outcome, Wire& wire) {
  v1::PingMessage message;
  *message.mutable_result() = outcome.result;
  PURSER_RETURN_IF_ERROR(wire.Send(message));
  PURSER_ASSIGN_OR_RETURN(v1::PingResult theirs, wire.WaitResult());
  return PingReport{plan, connecting, outcome, theirs};
}

absl::StatusOr<PingReport> RunConnecting(const v1::PingPlan& plan,
                                         const PingCommand& command, Side& side,
                                         PeerChannel& peer,
                                         Environment& environment) {
  v1::PingMessage message;
  *message.mutable_hello()->mutable_endpoint() = side.queue_pair.local();
  message.mutable_hello()->set_psn(side.psn);
  *message.mutable_hello()->mutable_plan() = plan;
  PURSER_RETURN_IF_ERROR(peer.Send(message, command.timeout));
  PURSER_ASSIGN_OR_RETURN(message, peer.Receive(command.timeout));
  if (!message.result().error().empty())
    return absl::AbortedError(
        fmt::format("{} gave up: {}", peer.peer(), message.result().error()));
  if (!message.has_answer())
    return absl::InvalidArgumentError(
        fmt::format("{} did not answer the hello", peer.peer()));
  const v1::PingAnswer& answer = message.answer();
  PURSER_RETURN_IF_ERROR(side.queue_pair.Connect(
      answer.endpoint(), {.sq_psn = side.psn, .rq_psn = answer.psn()}));
  environment.out << RenderConnected(peer.peer(), side.queue_pair.properties(),
                                     answer.endpoint())
                  << std::flush;
  Wire wire(side.queue_pair, peer, command.timeout);
  PingSession session(plan, wire, side.region);
  PURSER_RETURN_IF_ERROR(session.Prepare(false));
  PURSER_RETURN_IF_ERROR(session.PingPong());
  PURSER_RETURN_IF_ERROR(
      session.SendStream(answer.window_addr(), answer.rkey()));
  return Conclude(plan, true, session.outcome(), wire);
}

absl::StatusOr<PingReport> RunListening(const v1::PingHello& hello,
                                        const PingCommand& command, Side& side,
                                        PeerChannel& peer,
                                        Environment& environment) {
  PURSER_RETURN_IF_ERROR(side.queue_pair.Connect(
      hello.endpoint(), {.sq_psn = side.psn, .rq_psn = hello.psn()}));
  environment.out << RenderConnected(peer.peer(), side.queue_pair.properties(),
                                     hello.endpoint())
                  << std::flush;
  Wire wire(side.queue_pair, peer, command.timeout);
  PingSession session(hello.plan(), wire, side.region);
  PURSER_RETURN_IF_ERROR(session.Prepare(true));
  v1::PingMessage message;
  v1::PingAnswer& answer = *message.mutable_answer();
  *answer.mutable_endpoint() = side.queue_pair.local();
  answer.set_psn(side.psn);
  answer.set_window_addr(side.region.remote_addr() +
                         PingLayout(hello.plan()).window_offset());
  answer.set_rkey(side.region.rkey());
  PURSER_RETURN_IF_ERROR(peer.Send(message, command.timeout));
  PURSER_RETURN_IF_ERROR(session.Pong());
  PURSER_RETURN_IF_ERROR(session.ReceiveStream());
  return Conclude(hello.plan(), false, session.outcome(), wire);
}

// So that the peer does not wait for us in vain. It may be gone.
void TellFailure(const absl::Status& status, PeerChannel& peer) {
  v1::PingMessage message;
  message.mutable_result()->set_error(std::string(status.message()));
  (void)peer.Send(message, kHelloTimeout);
}

// Pods start in any order: a peer that does not listen, or whose name is not
// known yet, is tried again until the timeout.
absl::StatusOr<PeerChannel> ReachPeer(const PingCommand& command,
                                      Environment& environment) {
  const auto deadline = std::chrono::steady_clock::now() + command.timeout;
  for (bool told = false;; told = true) {
    const milliseconds left = std::chrono::ceil<milliseconds>(
        deadline - std::chrono::steady_clock::now());
    auto peer =
        PeerChannel::Connect(*command.connect, std::max(left, milliseconds(0)));
    const absl::Status& status = peer.status();
    const bool may_come =
        absl::IsUnavailable(status) || absl::IsNotFound(status);
    if (!may_come || left <= kRetry) return peer;
    if (!told)
      environment.err << fmt::format(
          "purser: {}; trying again for {} s\n", std::string(status.message()),
          std::chrono::ceil<std::chrono::seconds>(left).count());
    std::this_thread::sleep_for(kRetry);
  }
}

absl::StatusOr<PingReport> Connecting(const PingCommand& command,
                                      const std::string& shared_volume,
                                      client::Client& client,
                                      Environment& environment) {
  const v1::PingPlan plan = PlanOf(command);
  PURSER_ASSIGN_OR_RETURN(
      Side side, CreateSide(command.device, shared_volume, plan, client));
  PURSER_ASSIGN_OR_RETURN(PeerChannel peer, ReachPeer(command, environment));
  auto report = RunConnecting(plan, command, side, peer, environment);
  if (!report.ok()) TellFailure(report.status(), peer);
  return report;
}

struct Visitor {
  PeerChannel peer;
  v1::PingHello hello;
};

// The first that is a `purser qp ping`; whoever else comes is told of on `err`.
absl::StatusOr<Visitor> AwaitVisitor(int listener, milliseconds timeout,
                                     Environment& environment) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const milliseconds left = std::chrono::ceil<milliseconds>(
        deadline - std::chrono::steady_clock::now());
    PURSER_ASSIGN_OR_RETURN(
        PeerChannel peer,
        PeerChannel::Accept(listener, std::max(left, milliseconds(0))));
    auto message = peer.Receive(std::min(timeout, kHelloTimeout));
    absl::Status fault = message.status();
    if (message.ok() && !message->has_hello())
      fault = absl::InvalidArgumentError(
          fmt::format("{} did not begin with a hello", peer.peer()));
    if (fault.ok()) {
      fault = CheckPlan(message->hello().plan());
      if (fault.ok()) return Visitor{std::move(peer), message->hello()};
      TellFailure(fault, peer);
    }
    environment.err << fmt::format("purser: turned away: {}\n",
                                   std::string(fault.message()));
  }
}

absl::StatusOr<PingReport> Listening(const PingCommand& command,
                                     const std::string& shared_volume,
                                     client::Client& client,
                                     Environment& environment) {
  std::string address = *command.listen;
  if (address.find(':') == std::string::npos) address = ":" + address;
  PURSER_ASSIGN_OR_RETURN(base::TcpListener listener, base::ListenTcp(address));
  environment.out << fmt::format("listening on port {}\n", listener.port)
                  << std::flush;
  PURSER_ASSIGN_OR_RETURN(
      Visitor visitor,
      AwaitVisitor(listener.socket.get(), command.timeout, environment));
  auto side =
      CreateSide(command.device, shared_volume, visitor.hello.plan(), client);
  if (!side.ok()) {
    TellFailure(side.status(), visitor.peer);
    return side.status();
  }
  auto report =
      RunListening(visitor.hello, command, *side, visitor.peer, environment);
  if (!report.ok()) TellFailure(report.status(), visitor.peer);
  return report;
}

}  // namespace

int Ping(const PingCommand& command, const std::string& shared_volume,
         client::Client& client, Environment& environment) {
  auto report = command.connect
                    ? Connecting(command, shared_volume, client, environment)
                    : Listening(command, shared_volume, client, environment);
  if (!report.ok()) return Fail(report.status(), environment);
  environment.out << RenderPing(*report);
  if (Verified(*report)) return kOk;
  environment.err << "purser: data was damaged on its way\n";
  return kFailure;
}

}  // namespace purser::cli
