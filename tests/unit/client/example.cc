// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "base/status_macros.h"
#include "client/client.h"
#include "client/shared_region.h"

namespace example {

using namespace purser;  // NOLINT: short lines for the documentation

// [example]
// Sends a greeting to a peer, which sent us `remote` (its endpoint) and
// `remote_psn` by a way of its own and got `queue_pair.local()` and `psn` back.
absl::Status Greet(client::Client& client, client::QueuePair& queue_pair,
                   const v1::Endpoint& remote, uint32_t psn,
                   uint32_t remote_psn) {
  PURSER_RETURN_IF_ERROR(
      queue_pair.Connect(remote, {.sq_psn = psn, .rq_psn = remote_psn}));

  PURSER_ASSIGN_OR_RETURN(
      client::SharedRegion region,
      client::SharedRegion::Create(client, "/run/purser", 4096));
  memcpy(region.data(), "hello", 5);

  v1::SendWorkRequest send;
  send.set_wr_id(1);
  send.set_opcode(v1::SEND_OPCODE_SEND);
  *send.add_sg_list() = region.Slice(0, 5);
  PURSER_ASSIGN_OR_RETURN(v1::PostResponse posted,
                          queue_pair.PostSend({&send, 1}));
  if (posted.has_failure())  // ENOMEM: the send queue is full
    return absl::ResourceExhaustedError(posted.failure().message());

  PURSER_ASSIGN_OR_RETURN(std::vector<v1::WorkCompletion> completions,
                          queue_pair.Poll(16, std::chrono::seconds(1)));
  if (completions.empty())
    return absl::DeadlineExceededError("not acknowledged within 1 s");
  if (completions[0].status() != 0)
    return absl::InternalError(completions[0].status_name());
  return absl::OkStatus();
}
// [example]

}  // namespace example
