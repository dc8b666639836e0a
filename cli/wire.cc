// SPDX-License-Identifier: Apache-2.0
#include "cli/wire.h"

#include <algorithm>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long the peer's end may go unnoticed during a wait for completions.
constexpr milliseconds kSlice{200};
constexpr uint32_t kEntries = 256;

absl::Status CheckPosted(const absl::StatusOr<v1::PostResponse>& response,
                         const char* what) {
  PURSER_RETURN_IF_ERROR(response.status());
  if (!response->has_failure()) return absl::OkStatus();
  return absl::InternalError(fmt::format("{}: {}: {}", what,
                                         response->failure().error_name(),
                                         response->failure().message()));
}

}  // namespace

Wire::Wire(client::QueuePair& queue_pair, PeerChannel& peer,
           milliseconds timeout)
    : queue_pair_(queue_pair), peer_(peer), timeout_(timeout) {}

absl::Status Wire::PostSend(std::span<const v1::SendWorkRequest> requests) {
  return CheckPosted(queue_pair_.PostSend(requests), "post send");
}

absl::Status Wire::PostReceive(
    std::span<const v1::ReceiveWorkRequest> requests) {
  if (requests.empty()) return absl::OkStatus();
  return CheckPosted(queue_pair_.PostReceive(requests), "post receive");
}

Wire::Deadline Wire::Start() const { return steady_clock::now() + timeout_; }

absl::Status Wire::PollOnce(Deadline deadline) {
  const milliseconds left =
      std::max(std::chrono::ceil<milliseconds>(deadline - steady_clock::now()),
               milliseconds(0));
  PURSER_ASSIGN_OR_RETURN(std::vector<v1::WorkCompletion> completions,
                          queue_pair_.Poll(kEntries, std::min(left, kSlice)));
  for (v1::WorkCompletion& completion : completions) {
    if (completion.status() != 0)
      return absl::InternalError(fmt::format(
          "a {} failed: {} (ibv_wc_status {}, vendor_err {:#x})",
          completion.receive() ? "receive" : "send", completion.status_name(),
          completion.status(), completion.vendor_err()));
    if (completion.receive())
      received_.push_back(std::move(completion));
    else
      ++completed_sends_;
  }
  if (!completions.empty()) return absl::OkStatus();
  if (peer_.Pending()) return ReadMessage();
  if (steady_clock::now() >= deadline)
    return absl::DeadlineExceededError(
        fmt::format("no completion within {} ms: the peer is silent or packets "
                    "are lost",
                    timeout_.count()));
  return absl::OkStatus();
}

absl::Status Wire::ReadMessage() {
  PURSER_ASSIGN_OR_RETURN(v1::PingMessage message, peer_.Receive(timeout_));
  switch (message.message_case()) {
    case v1::PingMessage::kCredit:
      credit_ = std::max(credit_, message.credit().chunks());
      return absl::OkStatus();
    case v1::PingMessage::kResult:
      if (!message.result().error().empty())
        return absl::AbortedError(fmt::format("{} gave up: {}", peer_.peer(),
                                              message.result().error()));
      result_ = message.result();
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          fmt::format("{} sent a message out of turn", peer_.peer()));
  }
}

absl::Status Wire::WaitSends(uint64_t count) {
  const Deadline deadline = Start();
  while (completed_sends_ < count) PURSER_RETURN_IF_ERROR(PollOnce(deadline));
  return absl::OkStatus();
}

absl::StatusOr<v1::WorkCompletion> Wire::WaitReceive() {
  const Deadline deadline = Start();
  while (received_.empty()) PURSER_RETURN_IF_ERROR(PollOnce(deadline));
  v1::WorkCompletion completion = std::move(received_.front());
  received_.pop_front();
  return completion;
}

absl::Status Wire::WaitCredit(uint64_t chunks) {
  while (credit_ < chunks && !result_) PURSER_RETURN_IF_ERROR(ReadMessage());
  if (credit_ < chunks)
    return absl::AbortedError(fmt::format("{} ended after {} of {} chunks",
                                          peer_.peer(), credit_, chunks));
  return absl::OkStatus();
}

absl::StatusOr<v1::PingResult> Wire::WaitResult() {
  while (!result_) PURSER_RETURN_IF_ERROR(ReadMessage());
  return *result_;
}

absl::Status Wire::Send(const v1::PingMessage& message) {
  return peer_.Send(message, timeout_);
}

}  // namespace purser::cli
