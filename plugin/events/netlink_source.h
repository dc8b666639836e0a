// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "plugin/events/event_source.h"
#include "rdma/kernel_events.h"

namespace purser::plugin {

// A socket of the kernel's, whose datagrams `count` counts.
class NetlinkSource : public EventSource {
 public:
  using Count = uint64_t (*)(rdma::Bytes datagram);
  NetlinkSource(base::FileDescriptor socket, Count count)
      : socket_(std::move(socket)), count_(count) {}

  int fd() const override { return socket_.get(); }
  absl::StatusOr<uint64_t> Take() override {
    return rdma::TakeEvents(socket_, count_);
  }

 private:
  const base::FileDescriptor socket_;
  const Count count_;
};

absl::StatusOr<std::unique_ptr<EventSource>> MakeUeventSource();
absl::StatusOr<std::unique_ptr<EventSource>> MakeLinkSource();

// Whether the calling thread is in another network namespace than the one that
// sysfs shows `netdevs` of. False where that cannot be told.
bool IsOtherNamespace(const std::filesystem::path& sysfs_root,
                      const std::set<std::string>& netdevs);

}  // namespace purser::plugin
