// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/netlink_source.h"

#include "base/status_macros.h"

namespace purser::plugin {

absl::StatusOr<std::unique_ptr<EventSource>> MakeUeventSource() {
  PURSER_ASSIGN_OR_RETURN(base::FileDescriptor socket, rdma::OpenUevents());
  return std::make_unique<NetlinkSource>(std::move(socket), rdma::CountUevents);
}

absl::StatusOr<std::unique_ptr<EventSource>> MakeLinkSource() {
  PURSER_ASSIGN_OR_RETURN(base::FileDescriptor socket, rdma::OpenLinkEvents());
  return std::make_unique<NetlinkSource>(std::move(socket),
                                         rdma::CountLinkEvents);
}

}  // namespace purser::plugin
