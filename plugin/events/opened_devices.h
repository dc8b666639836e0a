// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "plugin/events/event_source.h"
#include "rdma/handles.h"
#include "rdma/uverbs_entry.h"

namespace purser::plugin {

// Devices that are kept open for the asynchronous events that they tell: fatal
// errors, ports, GIDs, LIDs. Opening takes a privilege (a device cgroup that
// allows it). A device's removal waits until it is closed here, so that must be
// done as soon as sysfs shows that it is gone. Owned by App; the main thread's.
class OpenedDevices : public EventSource {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // How long a device that reported a fatal error is left alone if it is not
  // made anew, as drivers do, and how often opening is tried again.
  static constexpr std::chrono::seconds kRetry{10};

  static absl::StatusOr<std::unique_ptr<OpenedDevices>> Create(
      rdma::Verbs& verbs, std::filesystem::path sysfs_root);

  int fd() const override { return epoll_.get(); }
  absl::StatusOr<uint64_t> Take() override;

  // Closes those that are gone or were made anew. Cheap: for each look.
  void CloseGone();
  // Opens those of these that are not open, and closes all others.
  void Follow(const std::set<std::string>& devices, TimePoint now);
  // Devices that reported a fatal error and have not come back since.
  std::set<std::string> fatal() const;
  // Why not all are listened to; OK if they are.
  absl::Status status() const;

 private:
  struct Entry {
    rdma::UverbsEntry uverbs;
    rdma::Context context;  // null: closed after a fatal error, or not opened
    bool fatal = false;
    absl::Status refused;
    TimePoint retry_at;
  };
  OpenedDevices(rdma::Verbs& verbs, std::filesystem::path sysfs_root,
                base::FileDescriptor epoll);
  void Open(const std::string& name, Entry& entry, TimePoint now);
  absl::Status Listen(const rdma::Context& context);
  uint64_t TakeOf(const std::string& name, Entry& entry);

  rdma::Verbs& verbs_;
  const std::filesystem::path sysfs_root_;
  const base::FileDescriptor epoll_;  // of all devices' descriptors
  std::map<std::string, Entry> entries_;
};

}  // namespace purser::plugin
