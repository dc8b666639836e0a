// SPDX-License-Identifier: Apache-2.0
#include "sidecar/waiting_poll.h"

#include <utility>

#include "sidecar/grpc_status.h"
#include "sidecar/messages.h"

namespace purser::sidecar {

WaitingPoll::WaitingPoll(std::shared_ptr<BrokeredQueuePair> queue_pair,
                         uint32_t max_entries,
                         v1::PollCompletionsResponse* response,
                         std::function<void(const grpc::Status&)> answer)
    : queue_pair_(std::move(queue_pair)),
      max_entries_(max_entries),
      response_(response),
      answer_(std::move(answer)) {}

void WaitingPoll::Start(std::chrono::milliseconds wait) {
  // The alarm keeps its function until it is destroyed, so that a shared_ptr in
  // it would keep this alive for ever.
  alarm_.Set(std::chrono::system_clock::now() + wait,
             [weak = weak_from_this()](bool) {
               if (auto self = weak.lock()) self->TimeIsUp();
             });
  {
    std::lock_guard lock(mutex_);
    subscription_ = queue_pair_->events().Subscribe(
        [self = shared_from_this()] { self->CompletionsMayBeThere(); });
  }
  if (absl::Status status = queue_pair_->work_queue().Arm(); !status.ok()) {
    End(std::unique_lock(mutex_), ToGrpcStatus(status));
    return;
  }
  CompletionsMayBeThere();
}

void WaitingPoll::Cancel() {
  End(std::unique_lock(mutex_),
      {grpc::StatusCode::CANCELLED, "the client gave up"});
}

void WaitingPoll::CompletionsMayBeThere() {
  std::unique_lock lock(mutex_);
  if (!answer_) return;
  const auto completions = queue_pair_->Fetch(max_entries_);
  if (completions.ok() && completions->empty()) return;
  Answer(std::move(lock), completions);
}

void WaitingPoll::TimeIsUp() {
  // This may answer it.
  const absl::Status status = queue_pair_->work_queue().Collect();
  std::unique_lock lock(mutex_);
  if (!answer_) return;
  if (!status.ok()) {
    End(std::move(lock), ToGrpcStatus(status));
    return;
  }
  const auto completions = queue_pair_->Fetch(max_entries_);
  Answer(std::move(lock), completions);
}

void WaitingPoll::Answer(
    std::unique_lock<std::mutex> lock,
    const absl::StatusOr<std::vector<Completion>>& completions) {
  if (!completions.ok()) {
    End(std::move(lock), ToGrpcStatus(completions.status()));
    return;
  }
  AddCompletions(*completions, *response_);
  End(std::move(lock), grpc::Status::OK);
}

void WaitingPoll::End(std::unique_lock<std::mutex> lock,
                      const grpc::Status& status) {
  const auto answer = std::exchange(answer_, nullptr);
  const uint64_t subscription = subscription_;
  lock.unlock();
  if (!answer) return;
  queue_pair_->events().Unsubscribe(subscription);
  answer(status);
}

}  // namespace purser::sidecar
