// SPDX-License-Identifier: Apache-2.0
//
// One side of a ping: its queue pair, the completions that come from it and,
// while it waits for them, what the peer says over TCP. Every wait ends: with
// what was waited for, with a failed completion, with the peer's end or its
// reason to give up, or after `timeout` without any progress. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/peer_channel.h"
#include "client/queue_pair.h"
#include "purser/v1/ping.pb.h"

namespace purser::cli {

class Wire {
 public:
  // Both outlive it.
  Wire(client::QueuePair& queue_pair, PeerChannel& peer,
       std::chrono::milliseconds timeout);

  // All of them, or an error.
  absl::Status PostSend(std::span<const v1::SendWorkRequest> requests);
  absl::Status PostReceive(std::span<const v1::ReceiveWorkRequest> requests);

  // Until `count` sends have completed since the beginning.
  absl::Status WaitSends(uint64_t count);
  // The next completed receive.
  absl::StatusOr<v1::WorkCompletion> WaitReceive();
  // Until the peer has verified `chunks` since the beginning.
  absl::Status WaitCredit(uint64_t chunks);
  absl::StatusOr<v1::PingResult> WaitResult();

  absl::Status Send(const v1::PingMessage& message);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  Deadline Start() const;
  absl::Status PollOnce(Deadline deadline);
  absl::Status ReadMessage();

  client::QueuePair& queue_pair_;
  PeerChannel& peer_;
  const std::chrono::milliseconds timeout_;
  uint64_t completed_sends_ = 0;
  std::deque<v1::WorkCompletion> received_;
  uint64_t credit_ = 0;
  std::optional<v1::PingResult> result_;
};

}  // namespace purser::cli
