// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "plugin/wakeup.h"

namespace purser::plugin {

// Waits for changes of a directory's entries (and, if so told, of what is
// written into its files), whether or not the directory exists yet: while it
// does not, its nearest existing ancestor is watched. For one thread; used as
// Arm() – look at the directory – Wait(), so that a change after the look ends
// the wait. Where the node has no inotify instance or watch left it polls
// instead (logged once) and goes back to inotify when it can.
class DirectoryWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  enum class What { kEntries, kEntriesAndContents };

  DirectoryWatch(std::string directory, std::chrono::milliseconds poll_interval,
                 What what = What::kEntries);

  void Arm();
  // Until something changed (perhaps), `wakeup` was notified, or `until`.
  void Wait(Wakeup& wakeup, TimePoint until);
  bool polling() const { return polling_; }
  // For those who wait otherwise: readable when something changed (perhaps),
  // negative while polling; and takes what is there, telling whether there was
  // anything.
  int fd() const { return fd_.get(); }
  bool Drain();

 private:
  struct Target {
    std::string path;
    std::pair<uint64_t, uint64_t> id;  // device, inode
    bool operator==(const Target&) const = default;
  };
  std::optional<Target> NearestExisting() const;
  // False if it must be polled; errno tells why.
  bool WatchNearest();
  void Forget();

  const std::string directory_;
  const std::chrono::milliseconds poll_interval_;
  const uint32_t events_;
  base::FileDescriptor fd_;
  int watch_ = -1;
  std::optional<Target> watched_;
  bool polling_ = false;
};

}  // namespace purser::plugin
