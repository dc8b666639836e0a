// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/names.h"
#include "client/shared_region.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

constexpr uint32_t kMessageBytes = 64;

struct Filled {
  v1::QueuePair queue_pair;
  uint64_t posted = 0;
  v1::PostFailure failure;
};

absl::StatusOr<client::QueuePair> CreatePeer(const FillCommand& command,
                                             client::Client& client) {
  client::QueuePairSpec spec;
  spec.device = command.device;
  spec.cap.set_max_send_wr(1);
  spec.cap.set_max_send_sge(1);
  spec.cap.set_max_recv_wr(1);
  spec.cap.set_max_recv_sge(1);
  return client.CreateQueuePair(spec);
}

// Posts until a post fails, or until the queue took more than it can have.
absl::Status PostUntilRefused(const FillCommand& command,
                              client::QueuePair& queue_pair,
                              const client::SharedRegion& region,
                              Filled& filled) {
  v1::SendWorkRequest send;
  send.set_opcode(v1::SEND_OPCODE_SEND);
  *send.add_sg_list() = region.Slice(0, kMessageBytes);
  const std::vector<v1::SendWorkRequest> sends(command.burst, send);
  const uint64_t plenty =
      uint64_t{2} * std::max(filled.queue_pair.send_slots(),
                             filled.queue_pair.cap().max_send_wr()) +
      command.burst;
  while (filled.posted <= plenty) {
    PURSER_ASSIGN_OR_RETURN(v1::PostResponse response,
                            queue_pair.PostSend(sends));
    filled.posted += response.posted();
    if (response.has_failure()) {
      filled.failure = response.failure();
      return absl::OkStatus();
    }
  }
  return absl::InternalError(fmt::format(
      "{} posts were taken by a send queue of {}: sends complete although the "
      "peer has no receives",
      filled.posted, filled.queue_pair.send_slots()));
}

absl::StatusOr<Filled> FillQueue(const FillCommand& command,
                                 const std::string& shared_volume,
                                 client::Client& client) {
  client::QueuePairSpec spec;
  spec.device = command.device;
  spec.cap = command.cap;
  PURSER_ASSIGN_OR_RETURN(client::QueuePair queue_pair,
                          client.CreateQueuePair(spec));
  PURSER_ASSIGN_OR_RETURN(client::QueuePair peer, CreatePeer(command, client));
  PURSER_ASSIGN_OR_RETURN(
      client::SharedRegion region,
      client::SharedRegion::Create(client, shared_volume, kMessageBytes,
                                   client::kLocalWrite, command.device));
  // rnr_retry 7, the default: the peer's "not ready" is retried for ever.
  PURSER_RETURN_IF_ERROR(peer.Connect(queue_pair.local(), {}));
  PURSER_RETURN_IF_ERROR(queue_pair.Connect(peer.local(), {}));
  Filled filled{queue_pair.properties()};
  PURSER_RETURN_IF_ERROR(PostUntilRefused(command, queue_pair, region, filled));
  return filled;
}

std::string Render(const FillCommand& command, const Filled& filled) {
  const v1::QueuePair& queue_pair = filled.queue_pair;
  base::TextTable table("lrl", 2);
  const auto row = [&table](const char* name, uint64_t count,
                            const std::string& note) {
    table.Row({name, base::FormatCount(count), note});
  };
  row("max_send_wr asked", command.cap.max_send_wr(), "");
  row("max_send_wr granted", queue_pair.cap().max_send_wr(),
      "as ibv_create_qp wrote back");
  row("posts it takes", queue_pair.send_slots(), "by the provider's rule");
  row("posted", filled.posted, "");
  table.Row({"next post", filled.failure.error_name(),
             fmt::format("errno {}", filled.failure.error_number())});
  return fmt::format(
             "filled the send queue of queue pair {} on {}, which takes {}; "
             "its "
             "peer has no receives\n",
             queue_pair.id(), queue_pair.device(),
             Bytes(queue_pair.memory().total_bytes())) +
         table.Text() + "  " + filled.failure.message() + "\n";
}

}  // namespace

int Fill(const FillCommand& command, const std::string& shared_volume,
         client::Client& client, Environment& environment) {
  auto filled = FillQueue(command, shared_volume, client);
  if (!filled.ok()) return Fail(filled.status(), environment);
  environment.out << Render(command, *filled);
  return kOk;
}

}  // namespace purser::cli
