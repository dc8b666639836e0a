// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pair_events.h"

#include <utility>
#include <vector>

namespace purser::sidecar {

uint64_t QueuePairEvents::Subscribe(std::function<void()> on_event) {
  std::lock_guard lock(mutex_);
  subscribers_.emplace(++last_subscription_, std::move(on_event));
  subscriber_count_ = subscribers_.size();
  return last_subscription_;
}

void QueuePairEvents::Unsubscribe(uint64_t subscription) {
  std::function<void()> ended;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  if (auto found = subscribers_.find(subscription);
      found != subscribers_.end()) {
    ended = std::move(found->second);
    subscribers_.erase(found);
    subscriber_count_ = subscribers_.size();
  }
}

void QueuePairEvents::CompletionEvent() {
  // Copies: a subscriber may subscribe, unsubscribe or end the queue pair.
  std::vector<std::function<void()>> subscribers;
  {
    std::lock_guard lock(mutex_);
    subscribers.reserve(subscribers_.size());
    for (const auto& [id, on_event] : subscribers_)
      subscribers.push_back(on_event);
  }
  for (const auto& on_event : subscribers) on_event();
}

void QueuePairEvents::Close() {
  std::map<uint64_t, std::function<void()>> subscribers;
  {
    std::lock_guard lock(mutex_);
    subscribers.swap(subscribers_);
    subscriber_count_ = 0;
  }
  for (const auto& [id, on_event] : subscribers) on_event();
}

}  // namespace purser::sidecar
