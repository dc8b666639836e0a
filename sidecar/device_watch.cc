// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/logging.h"
#include "sidecar/device_events.h"

namespace purser::sidecar {
namespace {

// Device nodes come a little later than sysfs entries: the first failures are
// only told by /readyz.
constexpr int kFailuresBeforeLog = 3;

}  // namespace

DeviceWatch::DeviceWatch(Device& device, OnLost on_lost, Times times)
    : device_(device), on_lost_(std::move(on_lost)), times_(times) {}

absl::StatusOr<std::unique_ptr<DeviceWatch>> DeviceWatch::Start(Device& device,
                                                                OnLost on_lost,
                                                                Times times) {
  std::unique_ptr<DeviceWatch> watch(
      new DeviceWatch(device, std::move(on_lost), times));
  watch->stop_event_ =
      base::FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!watch->stop_event_.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  watch->thread_ = std::thread([self = watch.get()] { self->Run(); });
  return watch;
}

DeviceWatch::~DeviceWatch() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_event_.get(), 1);
  thread_.join();
}

void DeviceWatch::Run() {
  while (UntilLost() && UntilOpen()) continue;
}

bool DeviceWatch::UntilLost() {
  const absl::StatusOr<std::shared_ptr<OpenedDevice>> opened = device_.Opened();
  if (!opened.ok()) return true;
  const std::optional<std::string> why =
      DeviceEvents(**opened, stop_event_.get(), times_.look_every)
          .ReadUntilLost();
  if (!why.has_value()) return false;
  // The entry that it had is not a new one to be opened at once: a device that
  // reported a fatal error may be there for some time before it is removed.
  attempts_ = {.entry = (*opened)->uverbs().value_or(rdma::UverbsEntry{}),
               .wait = times_.retry_every,
               .next = Clock::now() + times_.retry_every};
  device_.Lose(*why);
  on_lost_(*why);
  return true;
}

bool DeviceWatch::UntilOpen() {
  while (!device_.Opened().ok()) {
    if (StopsWithin(times_.look_every)) return false;
    const auto entry =
        rdma::FindUverbsEntry(device_.roots().sysfs, device_.name());
    if (entry.ok() && entry->has_value()) TryToOpen(**entry);
  }
  return true;
}

void DeviceWatch::TryToOpen(const rdma::UverbsEntry& entry) {
  if (attempts_.entry != entry) attempts_ = {.entry = entry};
  if (Clock::now() < attempts_.next) return;
  const absl::Status status = device_.Reopen();
  if (status.ok()) {
    base::LogInfo("RDMA device is back and open again",
                  {{"device", device_.name()},
                   {"uverbs", entry.path.filename().string()}});
    return;
  }
  attempts_.wait =
      std::clamp(2 * attempts_.wait, times_.look_every, times_.retry_every);
  attempts_.next = Clock::now() + attempts_.wait;
  const std::string text(status.message());
  if (++attempts_.failures < kFailuresBeforeLog || attempts_.logged == text)
    return;
  attempts_.logged = text;
  base::LogError("RDMA device is not opened again", {{"error", text}});
}

bool DeviceWatch::StopsWithin(std::chrono::milliseconds wait) const {
  pollfd stop{stop_event_.get(), POLLIN, 0};
  return poll(&stop, 1, static_cast<int>(wait.count())) > 0;
}

}  // namespace purser::sidecar
