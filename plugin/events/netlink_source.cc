// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/netlink_source.h"

#include <net/if.h>

#include "base/status_macros.h"
#include "rdma/sysfs.h"

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

bool IsOtherNamespace(const std::filesystem::path& sysfs_root,
                      const std::set<std::string>& netdevs) {
  std::error_code error;
  if (!std::filesystem::exists(sysfs_root / "class" / "net", error))
    return false;
  bool other = false;
  for (const std::string& netdev : netdevs) {
    const std::filesystem::path shown = sysfs_root / "class" / "net" / netdev;
    const int64_t index =
        rdma::LeadingNumber(rdma::OptionalAttribute(shown / "ifindex"), 0);
    // A pod's own interface may have the same name; its other end is elsewhere.
    const int64_t link =
        rdma::LeadingNumber(rdma::OptionalAttribute(shown / "iflink"), index);
    if (index > 0 && link == index && if_nametoindex(netdev.c_str()) == index)
      return false;
    other = true;
  }
  return other;
}

}  // namespace purser::plugin
