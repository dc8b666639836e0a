// SPDX-License-Identifier: Apache-2.0
#include "node_view/live_view.h"

#include <utility>

#include "base/logging.h"
#include "base/quantity.h"

namespace purser::node_view {
namespace {

constexpr int kRestPerReading = 10;

bool Used(const SourceState& source) {
  return source.reason.empty() || source.reason == "not_needed";
}

void LogSources(const View* before, const View& after) {
  for (size_t i = 0; i < after.sources.size(); ++i) {
    const SourceState& source = after.sources[i];
    const bool was_used = before == nullptr || Used(before->sources[i]);
    if (!Used(source) && was_used) {
      base::LogInfo("the node view goes without a source",
                    {{"source", source.name},
                     {"reason", source.reason},
                     {"detail", source.detail}});
    } else if (Used(source) && !was_used) {
      base::LogInfo("the node view has a source again",
                    {{"source", source.name}});
    }
  }
}

void LogReserve(const View* before, const View& after) {
  const uint64_t short_by = after.unreserved_bytes();
  if (short_by == 0 ||
      (before != nullptr && before->unreserved_bytes() == short_by))
    return;
  base::LogWarn(
      "the node reserves less memory than it advertises of queue memory that "
      "no pod's limit covers: raise the kubelet's system-reserved, advertise "
      "less, or reserve it in the containers' memory request and limit",
      {{"advertised", base::FormatBytes(after.advertised_node_charged_bytes)},
       {"reserved", base::FormatBytes(*after.reserved_memory_bytes)},
       {"short_by", base::FormatBytes(short_by)}});
}

}  // namespace

LiveView::LiveView(std::unique_ptr<NodeView> node_view)
    : node_view_(std::move(node_view)) {}

LiveView::~LiveView() { Stop(); }

void LiveView::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void LiveView::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const View> LiveView::Fresh(
    std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  if (view_ != nullptr && std::chrono::steady_clock::now() < rests_until_)
    return view_;
  // A reading under way may have passed by what the caller wants to see.
  const uint64_t wanted = begun_ + 1;
  wanted_ = std::max(wanted_, wanted);
  changed_.notify_all();
  changed_.wait_for(lock, patience, [&] { return done_ >= wanted; });
  return view_;
}

void LiveView::Run(const std::stop_token& stop) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return wanted_ > begun_; }))
        return;
      begun_ = wanted_;
    }
    Publish(node_view_->Read(stop));
  }
}

void LiveView::Publish(View view) {
  auto after = std::make_shared<const View>(std::move(view));
  std::shared_ptr<const View> before;
  {
    std::lock_guard lock(mutex_);
    before = std::exchange(view_, after);
    rests_until_ =
        std::chrono::steady_clock::now() + kRestPerReading * after->took;
    done_ = begun_;
    changed_.notify_all();
  }
  LogSources(before.get(), *after);
  LogReserve(before.get(), *after);
}

}  // namespace purser::node_view
