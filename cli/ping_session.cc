// SPDX-License-Identifier: Apache-2.0
#include "cli/ping_session.h"

#include <algorithm>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using std::chrono::steady_clock;

absl::Status CheckRange(const char* field, uint64_t value, uint64_t min,
                        uint64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the peer's plan: {} {} is not within {} and {}", field,
                  value, min, max));
}

}  // namespace

absl::Status CheckPlan(const v1::PingPlan& plan) {
  PURSER_RETURN_IF_ERROR(CheckRange("message_bytes", plan.message_bytes(), 1,
                                    kMaxPingMessageBytes));
  PURSER_RETURN_IF_ERROR(
      CheckRange("iterations", plan.iterations(), 0, kMaxPingIterations));
  PURSER_RETURN_IF_ERROR(
      CheckRange("stream_bytes", plan.stream_bytes(), 0, kMaxPingStreamBytes));
  PURSER_RETURN_IF_ERROR(
      CheckRange("chunk_bytes", plan.chunk_bytes(), 1, kMaxPingMessageBytes));
  PURSER_RETURN_IF_ERROR(CheckRange("window_chunks", plan.window_chunks(), 2,
                                    kMaxPingWindowChunks));
  return CheckRange("window_chunks x chunk_bytes",
                    uint64_t{plan.window_chunks()} * plan.chunk_bytes(), 1,
                    kMaxPingWindowBytes);
}

uint64_t StreamChunks(const v1::PingPlan& plan) {
  return (plan.stream_bytes() + plan.chunk_bytes() - 1) / plan.chunk_bytes();
}

PingSession::PingSession(const v1::PingPlan& plan, Wire& wire,
                         client::SharedRegion& region)
    : plan_(plan), layout_(plan), wire_(wire), region_(region) {}

absl::Status PingSession::Prepare(bool listening) {
  PURSER_RETURN_IF_ERROR(
      PostMessageReceives(0, std::min<uint64_t>(2, plan_.iterations())));
  if (!listening || plan_.iterations() > 0) return absl::OkStatus();
  return PostStreamReceives(0);
}

absl::Status PingSession::PingPong() {
  outcome_.round_trips.reserve(plan_.iterations());
  for (uint64_t i = 0; i < plan_.iterations(); ++i) {
    const auto start = steady_clock::now();
    PURSER_RETURN_IF_ERROR(SendPayload(Lane::kThere, i));
    PURSER_RETURN_IF_ERROR(ReceivePayload(Lane::kBack, i));
    outcome_.round_trips.push_back(steady_clock::now() - start);
    if (i + 2 < plan_.iterations())
      PURSER_RETURN_IF_ERROR(PostMessageReceives(i + 2, 1));
  }
  return wire_.WaitSends(posted_sends_);
}

absl::Status PingSession::Pong() {
  for (uint64_t i = 0; i < plan_.iterations(); ++i) {
    PURSER_RETURN_IF_ERROR(ReceivePayload(Lane::kThere, i));
    if (i + 2 < plan_.iterations())
      PURSER_RETURN_IF_ERROR(PostMessageReceives(i + 2, 1));
    if (i + 1 == plan_.iterations())
      PURSER_RETURN_IF_ERROR(PostStreamReceives(0));
    PURSER_RETURN_IF_ERROR(SendPayload(Lane::kBack, i));
  }
  return wire_.WaitSends(posted_sends_);
}

absl::Status PingSession::SendStream(uint64_t window_addr, uint32_t rkey) {
  const uint64_t chunks = StreamChunks(plan_);
  const uint64_t window = plan_.window_chunks();
  const uint64_t batch = window / 2;
  const auto start = steady_clock::now();
  const uint64_t sends_before = posted_sends_;
  std::vector<v1::SendWorkRequest> writes;
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const uint64_t end = std::min(chunk + batch, chunks);
    if (writes.empty() && end > window) {
      // The room of the batch must be free at the peer and here.
      PURSER_RETURN_IF_ERROR(wire_.WaitCredit(end - window));
      PURSER_RETURN_IF_ERROR(wire_.WaitSends(sends_before + end - window));
    }
    writes.push_back(WriteChunk(chunk, window_addr, rkey));
    if (writes.size() < batch && chunk + 1 < chunks) continue;
    PURSER_RETURN_IF_ERROR(wire_.PostSend(writes));
    posted_sends_ += writes.size();
    writes.clear();
  }
  PURSER_RETURN_IF_ERROR(wire_.WaitSends(posted_sends_));
  PURSER_RETURN_IF_ERROR(wire_.WaitCredit(chunks));
  outcome_.stream_time = steady_clock::now() - start;
  outcome_.result.set_stream_checksum(checksum_.value());
  return absl::OkStatus();
}

absl::Status PingSession::ReceiveStream() {
  const uint64_t chunks = StreamChunks(plan_);
  const uint64_t window = plan_.window_chunks();
  const auto start = steady_clock::now();
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    PURSER_ASSIGN_OR_RETURN(v1::WorkCompletion completion, wire_.WaitReceive());
    if (completion.imm_data() != static_cast<uint32_t>(chunk))
      return absl::DataLossError(
          fmt::format("chunk {} came where chunk {} was due",
                      completion.imm_data(), static_cast<uint32_t>(chunk)));
    const auto bytes = Bytes(layout_.chunk_offset(chunk), ChunkBytes(chunk));
    Verify(Lane::kStream, chunk, bytes);
    checksum_.Add(bytes);
    if ((chunk + 1) % (window / 2) == 0 || chunk + 1 == chunks) {
      PURSER_RETURN_IF_ERROR(PostStreamReceives(chunk + 1));
      v1::PingMessage message;
      message.mutable_credit()->set_chunks(chunk + 1);
      PURSER_RETURN_IF_ERROR(wire_.Send(message));
    }
  }
  outcome_.stream_time = steady_clock::now() - start;
  outcome_.result.set_stream_checksum(checksum_.value());
  return absl::OkStatus();
}

absl::Status PingSession::PostMessageReceives(uint64_t from, uint64_t count) {
  std::vector<v1::ReceiveWorkRequest> receives(count);
  for (uint64_t i = 0; i < count; ++i)
    *receives[i].add_sg_list() =
        region_.Slice(layout_.receive_offset(from + i), plan_.message_bytes());
  return wire_.PostReceive(receives);
}

absl::Status PingSession::PostStreamReceives(uint64_t verified) {
  const uint64_t wanted =
      std::min(verified + plan_.window_chunks(), StreamChunks(plan_));
  // Without memory: the data goes where the peer's RDMA WRITE says.
  const std::vector<v1::ReceiveWorkRequest> receives(wanted -
                                                     posted_stream_receives_);
  posted_stream_receives_ = wanted;
  return wire_.PostReceive(receives);
}

absl::Status PingSession::SendPayload(Lane lane, uint64_t iteration) {
  // The one buffer is in use until the send before has completed.
  PURSER_RETURN_IF_ERROR(wire_.WaitSends(posted_sends_));
  Payload(plan_.seed(), lane, iteration).Fill(Bytes(0, plan_.message_bytes()));
  v1::SendWorkRequest send;
  send.set_wr_id(iteration);
  send.set_opcode(v1::SEND_OPCODE_SEND);
  *send.add_sg_list() = region_.Slice(0, plan_.message_bytes());
  PURSER_RETURN_IF_ERROR(wire_.PostSend({&send, 1}));
  ++posted_sends_;
  outcome_.message_bytes_moved += plan_.message_bytes();
  return absl::OkStatus();
}

absl::Status PingSession::ReceivePayload(Lane lane, uint64_t iteration) {
  PURSER_ASSIGN_OR_RETURN(v1::WorkCompletion completion, wire_.WaitReceive());
  if (completion.byte_len() != plan_.message_bytes())
    return absl::DataLossError(
        fmt::format("message {} has {} bytes instead of {}", iteration,
                    completion.byte_len(), plan_.message_bytes()));
  outcome_.message_bytes_moved += plan_.message_bytes();
  Verify(lane, iteration,
         Bytes(layout_.receive_offset(iteration), plan_.message_bytes()));
  return absl::OkStatus();
}

void PingSession::Verify(Lane lane, uint64_t index,
                         std::span<const std::byte> bytes) {
  const uint64_t wrong = Payload(plan_.seed(), lane, index).Mismatches(bytes);
  v1::PingResult& result = outcome_.result;
  result.set_mismatched_bytes(result.mismatched_bytes() + wrong);
  result.set_verified_bytes(result.verified_bytes() + bytes.size() - wrong);
}

std::span<std::byte> PingSession::Bytes(uint64_t offset, uint64_t length) {
  return {region_.data() + offset, length};
}

uint32_t PingSession::ChunkBytes(uint64_t chunk) const {
  return static_cast<uint32_t>(std::min<uint64_t>(
      plan_.chunk_bytes(), plan_.stream_bytes() - chunk * plan_.chunk_bytes()));
}

v1::SendWorkRequest PingSession::WriteChunk(uint64_t chunk,
                                            uint64_t window_addr,
                                            uint32_t rkey) {
  const uint64_t offset = layout_.chunk_offset(chunk);
  const auto bytes = Bytes(offset, ChunkBytes(chunk));
  Payload(plan_.seed(), Lane::kStream, chunk).Fill(bytes);
  checksum_.Add(bytes);
  v1::SendWorkRequest write;
  write.set_wr_id(chunk);
  write.set_opcode(v1::SEND_OPCODE_RDMA_WRITE_WITH_IMM);
  write.set_imm_data(static_cast<uint32_t>(chunk));
  write.set_remote_addr(window_addr + offset - layout_.window_offset());
  write.set_rkey(rkey);
  *write.add_sg_list() = region_.Slice(offset, ChunkBytes(chunk));
  return write;
}

}  // namespace purser::cli
