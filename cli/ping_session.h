// SPDX-License-Identifier: Apache-2.0
//
// What a connected pair of queue pairs does during a ping, from either side.
// Everything received is compared with what it should be.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "cli/payload.h"
#include "cli/wire.h"
#include "client/shared_region.h"
#include "purser/v1/ping.pb.h"

namespace purser::cli {

// The largest plan that a listening side carries out for its peer.
inline constexpr uint32_t kMaxPingMessageBytes = 16 << 20;
inline constexpr uint64_t kMaxPingIterations = 10'000'000;
inline constexpr uint64_t kMaxPingStreamBytes = uint64_t{1} << 40;
inline constexpr uint32_t kMaxPingWindowChunks = 64;
inline constexpr uint64_t kMaxPingWindowBytes = 256 << 20;
inline constexpr uint32_t kPingWindowChunks = 16;

// InvalidArgument names the field that is out of range.
absl::Status CheckPlan(const v1::PingPlan& plan);
uint64_t StreamChunks(const v1::PingPlan& plan);

// Both sides' shared region: a message to send, two to receive, the window.
class PingLayout {
 public:
  explicit PingLayout(const v1::PingPlan& plan) : plan_(plan) {}
  uint64_t receive_offset(uint64_t iteration) const {
    return plan_.message_bytes() * (1 + iteration % 2);
  }
  uint64_t window_offset() const { return uint64_t{3} * plan_.message_bytes(); }
  uint64_t chunk_offset(uint64_t chunk) const {
    return window_offset() +
           chunk % plan_.window_chunks() * uint64_t{plan_.chunk_bytes()};
  }
  uint64_t bytes() const {
    return window_offset() +
           (plan_.stream_bytes() == 0
                ? 0
                : uint64_t{plan_.window_chunks()} * plan_.chunk_bytes());
  }

 private:
  v1::PingPlan plan_;
};

struct PingOutcome {
  v1::PingResult result;  // of this side
  uint64_t message_bytes_moved = 0;
  std::vector<std::chrono::nanoseconds> round_trips;
  std::chrono::nanoseconds stream_time{0};
};

class PingSession {
 public:
  // All outlive it.
  PingSession(const v1::PingPlan& plan, Wire& wire,
              client::SharedRegion& region);

  // Posts what must be there before the peer may send.
  absl::Status Prepare(bool listening);
  // SENDs there and back. The answering side posts the stream's receives before
  // its last answer.
  absl::Status PingPong();
  absl::Status Pong();
  absl::Status SendStream(uint64_t window_addr, uint32_t rkey);
  absl::Status ReceiveStream();

  const PingOutcome& outcome() const { return outcome_; }

 private:
  absl::Status PostMessageReceives(uint64_t from, uint64_t count);
  // For a window beyond the chunks that are verified.
  absl::Status PostStreamReceives(uint64_t verified);
  absl::Status SendPayload(Lane lane, uint64_t iteration);
  absl::Status ReceivePayload(Lane lane, uint64_t iteration);
  // Counts `bytes` as verified or mismatched.
  void Verify(Lane lane, uint64_t index, std::span<const std::byte> bytes);
  std::span<std::byte> Bytes(uint64_t offset, uint64_t length);
  uint32_t ChunkBytes(uint64_t chunk) const;
  v1::SendWorkRequest WriteChunk(uint64_t chunk, uint64_t window_addr,
                                 uint32_t rkey);

  const v1::PingPlan plan_;
  const PingLayout layout_;
  Wire& wire_;
  client::SharedRegion& region_;
  uint64_t posted_sends_ = 0;
  uint64_t posted_stream_receives_ = 0;
  Checksum checksum_;
  PingOutcome outcome_;
};

}  // namespace purser::cli
