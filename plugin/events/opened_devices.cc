// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/opened_devices.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "base/logging.h"
#include "base/status_macros.h"

namespace purser::plugin {

OpenedDevices::OpenedDevices(rdma::Verbs& verbs,
                             std::filesystem::path sysfs_root,
                             base::FileDescriptor epoll)
    : verbs_(verbs),
      sysfs_root_(std::move(sysfs_root)),
      epoll_(std::move(epoll)) {}

absl::StatusOr<std::unique_ptr<OpenedDevices>> OpenedDevices::Create(
    rdma::Verbs& verbs, std::filesystem::path sysfs_root) {
  base::FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
  return std::unique_ptr<OpenedDevices>(
      new OpenedDevices(verbs, std::move(sysfs_root), std::move(epoll)));
}

absl::StatusOr<uint64_t> OpenedDevices::Take() {
  uint64_t events = 0;
  for (auto& [name, entry] : entries_) {
    if (entry.context != nullptr) events += TakeOf(name, entry);
  }
  return events;
}

uint64_t OpenedDevices::TakeOf(const std::string& name, Entry& entry) {
  for (uint64_t events = 0;; ++events) {
    ibv_async_event event{};
    const absl::StatusOr<bool> read =
        verbs_.GetAsyncEvent(entry.context.get(), &event);
    if (read.ok() && !*read) return events;
    if (!read.ok()) {
      base::LogWarn("a device gives no events any more: closing it",
                    {{"device", name}, {"error", read.status()}});
      entry.refused = read.status();
      entry.context.reset();
      return events + 1;
    }
    const ibv_event_type type = event.event_type;
    verbs_.AckAsyncEvent(&event);
    base::LogInfo("device event", {{"device", name},
                                   {"event", ibv_event_type_str(type)},
                                   {"port", event.element.port_num}});
    if (type != IBV_EVENT_DEVICE_FATAL) continue;
    // Its driver waits, too, until it is closed.
    entry.fatal = true;
    entry.context.reset();
    return events + 1;
  }
}

void OpenedDevices::CloseGone() {
  std::erase_if(entries_, [](const auto& entry) {
    return !rdma::IsThere(entry.second.uverbs);
  });
}

void OpenedDevices::Follow(const std::set<std::string>& devices,
                           TimePoint now) {
  CloseGone();
  std::erase_if(entries_, [&](const auto& entry) {
    return !devices.contains(entry.first);
  });
  for (const std::string& name : devices) {
    const auto found = entries_.find(name);
    if (found != entries_.end()) {
      Entry& entry = found->second;
      if (entry.context != nullptr) continue;
      // A fatal error's retry begins when it is first seen here.
      if (entry.retry_at == TimePoint()) entry.retry_at = now + kRetry;
      if (now >= entry.retry_at) Open(name, entry, now);
      continue;
    }
    const auto uverbs = rdma::FindUverbsEntry(sysfs_root_, name);
    if (!uverbs.ok() || !uverbs->has_value()) continue;
    Open(name, entries_[name] = {.uverbs = **uverbs}, now);
  }
}

void OpenedDevices::Open(const std::string& name, Entry& entry, TimePoint now) {
  absl::StatusOr<rdma::Context> context = rdma::OpenDevice(verbs_, name);
  absl::Status status = context.status();
  if (status.ok()) status = Listen(*context);
  if (!status.ok()) {
    if (entry.refused.code() != status.code())
      base::LogWarn("a device cannot be opened for its events",
                    {{"device", name}, {"error", status}});
    entry.refused = std::move(status);
    entry.retry_at = now + kRetry;
    return;
  }
  if (entry.fatal)
    base::LogInfo("a device can be opened again after its fatal error",
                  {{"device", name}});
  entry.context = *std::move(context);
  entry.refused = absl::OkStatus();
  entry.fatal = false;
  entry.retry_at = {};
}

absl::Status OpenedDevices::Listen(const rdma::Context& context) {
  epoll_event event{};
  event.events = EPOLLIN;
  // Closing the device's descriptor takes it out again.
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, context->async_fd, &event) != 0)
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  return absl::OkStatus();
}

std::set<std::string> OpenedDevices::fatal() const {
  std::set<std::string> names;
  for (const auto& [name, entry] : entries_)
    if (entry.fatal) names.insert(name);
  return names;
}

absl::Status OpenedDevices::status() const {
  for (const auto& [name, entry] : entries_)
    if (!entry.refused.ok()) return entry.refused;
  return absl::OkStatus();
}

}  // namespace purser::plugin
