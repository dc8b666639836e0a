// SPDX-License-Identifier: Apache-2.0
//
// A PollCompletions call that waits for its first completion without holding a
// thread: whoever takes completions from the completion queue (the device's
// event thread, or another poll), a timer or a cancellation ends it, whichever
// comes first. Keeps the queue pair alive until then. Its lock is held while
// completions are fetched, never while they are taken from the device, which
// may tell others that wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "grpcpp/alarm.h"
#include "grpcpp/support/status.h"
#include "purser/v1/sidecar.pb.h"
#include "sidecar/brokered_queue_pair.h"

namespace purser::sidecar {

class WaitingPoll : public std::enable_shared_from_this<WaitingPoll> {
 public:
  // `response` is filled and `answer` called once, from any thread; `response`
  // is not touched after that.
  WaitingPoll(std::shared_ptr<BrokeredQueuePair> queue_pair,
              uint32_t max_entries, v1::PollCompletionsResponse* response,
              std::function<void(const grpc::Status&)> answer);

  void Start(std::chrono::milliseconds wait);
  void Cancel();

 private:
  void CompletionsMayBeThere();
  void TimeIsUp();
  void Answer(std::unique_lock<std::mutex> lock,
              const absl::StatusOr<std::vector<Completion>>& completions);
  void End(std::unique_lock<std::mutex> lock, const grpc::Status& status);

  const std::shared_ptr<BrokeredQueuePair> queue_pair_;
  const uint32_t max_entries_;
  v1::PollCompletionsResponse* const response_;
  grpc::Alarm alarm_;
  std::mutex mutex_;
  std::function<void(const grpc::Status&)> answer_
      ABSL_GUARDED_BY(mutex_);  // empty: ended
  uint64_t subscription_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace purser::sidecar
