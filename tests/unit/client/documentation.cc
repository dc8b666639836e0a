// SPDX-License-Identifier: Apache-2.0
//
// The code of docs/client.md, so that it compiles; documentation_test compares.
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "client/client.h"
#include "client/shared_region.h"

namespace documentation {

using namespace purser;  // NOLINT: as short as in the documentation

// [create]
// One queue pair with room for `depth` sends; if the budget refuses, the
// deepest one that fits now.
absl::StatusOr<client::QueuePair> CreateOrShrink(client::Client& client,
                                                 uint32_t depth) {
  client::QueuePairSpec spec;
  spec.cap.set_max_send_wr(depth);
  spec.cap.set_max_send_sge(1);
  spec.cap.set_max_recv_wr(16);
  spec.cap.set_max_recv_sge(1);
  auto queue_pair = client.CreateQueuePair(spec);
  auto refusal = client::RefusalOf(queue_pair.status());
  if (!refusal || refusal->largest_max_send_wr() == 0) return queue_pair;
  spec.cap.set_max_send_wr(refusal->largest_max_send_wr());
  return client.CreateQueuePair(spec);
}
// [create]

// [send]
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
// [send]

}  // namespace documentation
