// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pair_events.h"

#include <algorithm>
#include <utility>

namespace purser::sidecar {

uint64_t QueuePairEvents::Subscribe(std::function<void()> on_event) {
  std::lock_guard lock(mutex_);
  subscribers_.emplace_back(++last_subscription_, std::move(on_event));
  subscriber_count_ = static_cast<uint32_t>(subscribers_.size());
  return last_subscription_;
}

void QueuePairEvents::Unsubscribe(uint64_t subscription) {
  std::function<void()> ended;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(
      subscribers_.begin(), subscribers_.end(),
      [&](const auto& each) { return each.first == subscription; });
  if (found == subscribers_.end()) return;
  ended = std::move(found->second);
  subscribers_.erase(found);
  subscriber_count_ = static_cast<uint32_t>(subscribers_.size());
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
  Subscribers subscribers;
  {
    std::lock_guard lock(mutex_);
    subscribers.swap(subscribers_);
    subscriber_count_ = 0;
  }
  for (const auto& [id, on_event] : subscribers) on_event();
}

}  // namespace purser::sidecar
