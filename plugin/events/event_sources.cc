// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/event_sources.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/logging.h"

namespace purser::plugin {
namespace {

// As a label.
const char* ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      return "not_permitted";
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
      return "absent";
    default:
      return "failed";
  }
}

constexpr const char* kInstead =
    "without this source of events, changes are found by looking";

}  // namespace

void EventSources::Add(RefreshCause cause,
                       absl::StatusOr<std::unique_ptr<EventSource>> source) {
  if (!source.ok()) {
    base::LogWarn(kInstead, {{"source", RefreshCauseName(cause)},
                             {"error", source.status()}});
    return SetReason(cause, ReasonOf(source.status()));
  }
  sources_[static_cast<size_t>(cause)] = *std::move(source);
  SetReason(cause, "");
}

void EventSources::Remove(RefreshCause cause, const std::string& reason) {
  sources_[static_cast<size_t>(cause)].reset();
  SetReason(cause, reason);
}

void EventSources::Judge(RefreshCause cause, const std::string& reason) {
  if (sources_[static_cast<size_t>(cause)] == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    if (reasons_[static_cast<size_t>(cause)] == reason) return;
  }
  SetReason(cause, reason);
  if (reason.empty()) {
    base::LogInfo("events are received", {{"source", RefreshCauseName(cause)}});
  } else {
    base::LogWarn(kInstead,
                  {{"source", RefreshCauseName(cause)}, {"reason", reason}});
  }
}

void EventSources::Judge(RefreshCause cause, const absl::Status& status) {
  Judge(cause, std::string(status.ok() ? "" : ReasonOf(status)));
}

std::vector<RefreshCause> EventSources::Wait(std::initializer_list<int> others,
                                             TimePoint until) {
  using std::chrono::milliseconds;
  // At most an hour: poll(2) counts in int milliseconds. Rounded up, so that
  // the time is really over when it returns.
  const auto timeout = std::clamp<milliseconds>(
      std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()),
      milliseconds(0), std::chrono::hours(1));
  // A negative descriptor is one that poll leaves out.
  std::vector<pollfd> waited;
  for (const std::unique_ptr<EventSource>& source : sources_)
    waited.push_back({source ? source->fd() : -1, POLLIN, 0});
  for (const int other : others) waited.push_back({other, POLLIN, 0});
  std::vector<RefreshCause> causes;
  if (poll(waited.data(), waited.size(), static_cast<int>(timeout.count())) <=
      0)
    return causes;
  for (size_t i = 0; i < kEventSources; ++i) {
    const auto cause = static_cast<RefreshCause>(i);
    if (waited[i].revents != 0 && TakeEvents(cause)) causes.push_back(cause);
  }
  return causes;
}

bool EventSources::TakeEvents(RefreshCause cause) {
  const absl::StatusOr<uint64_t> events =
      sources_[static_cast<size_t>(cause)]->Take();
  if (!events.ok()) {
    base::LogError(kInstead, {{"source", RefreshCauseName(cause)},
                              {"error", events.status()}});
    Remove(cause, ReasonOf(events.status()));
    return true;  // what it would have told may have happened
  }
  events_.Add(cause, *events);
  return *events > 0;
}

void EventSources::SetReason(RefreshCause cause, const std::string& reason) {
  std::lock_guard lock(mutex_);
  reasons_[static_cast<size_t>(cause)] = reason;
}

std::vector<EventSourceState> EventSources::States() const {
  std::vector<EventSourceState> states;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kEventSources; ++i) {
    const auto cause = static_cast<RefreshCause>(i);
    states.push_back({cause, reasons_[i], events_.Of(cause)});
  }
  return states;
}

}  // namespace purser::plugin
