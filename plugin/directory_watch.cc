// SPDX-License-Identifier: Apache-2.0
#include "plugin/directory_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/logging.h"

namespace purser::plugin {
namespace {

constexpr uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                             IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |
                             IN_ONLYDIR;
// After these the watch says nothing about the path any more.
constexpr uint32_t kWatchIsVoid =
    IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

}  // namespace

DirectoryWatch::DirectoryWatch(std::string directory,
                               std::chrono::milliseconds poll_interval,
                               What what)
    : directory_(std::move(directory)),
      poll_interval_(poll_interval),
      events_(what == What::kEntries ? kEvents : kEvents | IN_CLOSE_WRITE) {}

void DirectoryWatch::Arm() {
  const bool watching = WatchNearest();
  const int error = errno;
  if (!watching && !polling_) {
    base::LogWarn(
        "inotify is not to be had: polling instead (raise "
        "fs.inotify.max_user_instances and max_user_watches)",
        {{"directory", directory_},
         {"interval_ms", poll_interval_.count()},
         {"error", absl::ErrnoToStatus(error, "inotify")}});
  } else if (watching && polling_) {
    base::LogInfo("inotify works again", {{"directory", directory_}});
  }
  polling_ = !watching;
}

std::optional<DirectoryWatch::Target> DirectoryWatch::NearestExisting() const {
  std::filesystem::path path = directory_;
  while (true) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      return Target{path.string(), {info.st_dev, info.st_ino}};
    if (!path.has_relative_path()) return std::nullopt;
    path = path.parent_path();
  }
}

bool DirectoryWatch::WatchNearest() {
  if (!fd_.valid())
    fd_ = base::FileDescriptor(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd_.valid()) return false;
  // What is nearest may change between the look and the watch: until they
  // agree. Bounded, since somebody may make and remove it all the time.
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::optional<Target> nearest = NearestExisting();
    if (!nearest) return false;
    if (nearest == watched_) return true;
    Forget();
    watch_ = inotify_add_watch(fd_.get(), nearest->path.c_str(), events_);
    if (watch_ >= 0) {
      watched_ = nearest;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return false;
    }
  }
  return false;
}

void DirectoryWatch::Forget() {
  if (watch_ >= 0) inotify_rm_watch(fd_.get(), watch_);
  watch_ = -1;
  watched_.reset();
}

bool DirectoryWatch::Drain() {
  bool any = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  ssize_t bytes = 0;
  while (fd_.valid() &&
         (bytes = read(fd_.get(), buffer.data(), buffer.size())) > 0) {
    any = true;
    for (ssize_t at = 0; at < bytes;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      if (event.wd == watch_ && (event.mask & kWatchIsVoid) != 0) Forget();
    }
  }
  return any;
}

void DirectoryWatch::Wait(Wakeup& wakeup, TimePoint until) {
  using std::chrono::milliseconds;
  const TimePoint now = std::chrono::steady_clock::now();
  if (polling_) until = std::min(until, now + poll_interval_);
  // At most an hour: poll(2) counts in int milliseconds. Rounded up, so that
  // the time is really over when it returns.
  const auto timeout =
      std::clamp<milliseconds>(std::chrono::ceil<milliseconds>(until - now),
                               milliseconds(0), std::chrono::hours(1));
  std::array<pollfd, 2> waited = {
      {{wakeup.fd(), POLLIN, 0}, {fd_.get(), POLLIN, 0}}};
  poll(waited.data(), waited.size(), static_cast<int>(timeout.count()));
  wakeup.Drain();
  Drain();
}

}  // namespace purser::plugin
