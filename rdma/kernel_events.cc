// SPDX-License-Identifier: Apache-2.0
#include "rdma/kernel_events.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

// The kernel's own multicast group; 2 is udev's.
constexpr uint32_t kKernelUevents = 1;

// Room for what comes while a scan is under way.
constexpr int kReceiveBytes = 1 << 20;
constexpr int kDatagramsAtOnce = 256;

absl::StatusOr<base::FileDescriptor> OpenMulticast(int protocol,
                                                   uint32_t groups,
                                                   const char* what) {
  base::FileDescriptor fd(
      socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
  if (!fd.valid())
    return absl::ErrnoToStatus(errno, fmt::format("open a socket of {}", what));
  // Best effort: without it a storm is noticed by a loss.
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBytes,
             sizeof kReceiveBytes);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof address) != 0)
    return absl::ErrnoToStatus(errno, fmt::format("listen to {}", what));
  return fd;
}

}  // namespace

absl::StatusOr<base::FileDescriptor> OpenUevents() {
  return OpenMulticast(NETLINK_KOBJECT_UEVENT, kKernelUevents, "uevents");
}

absl::StatusOr<base::FileDescriptor> OpenLinkEvents() {
  return OpenMulticast(NETLINK_ROUTE,
                       RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
                       "rtnetlink");
}

// "add@/devices/…", then "KEY=value", each with a NUL behind it.
uint64_t CountUevents(Bytes datagram) {
  constexpr std::string_view kSubsystem = "SUBSYSTEM=";
  std::string_view left(reinterpret_cast<const char*>(datagram.data()),
                        datagram.size());
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\0'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    if (!line.starts_with(kSubsystem)) continue;
    const std::string_view subsystem = line.substr(kSubsystem.size());
    return subsystem == "net" || subsystem == "infiniband" ||
                   subsystem == "infiniband_verbs" ||
                   subsystem == "infiniband_mad"
               ? 1
               : 0;
  }
  return 0;
}

uint64_t CountLinkEvents(Bytes datagram) {
  // libnl takes no const.
  auto* message =
      reinterpret_cast<nlmsghdr*>(const_cast<std::byte*>(datagram.data()));
  int left = static_cast<int>(datagram.size());
  uint64_t events = 0;
  for (; nlmsg_ok(message, left); message = nlmsg_next(message, &left)) {
    switch (message->nlmsg_type) {
      case RTM_NEWLINK:
      case RTM_DELLINK:
      case RTM_NEWADDR:
      case RTM_DELADDR:
        ++events;
        break;
      default:
        break;
    }
  }
  return events;
}

absl::StatusOr<uint64_t> TakeEvents(const base::FileDescriptor& socket,
                                    absl::FunctionRef<uint64_t(Bytes)> count) {
  // A uevent has 2 KiB of variables at most, an interface about as much.
  alignas(nlmsghdr) std::array<std::byte, 8192> buffer;
  uint64_t events = 0;
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    sockaddr_nl sender{};
    socklen_t sender_length = sizeof sender;
    const ssize_t length =
        recvfrom(socket.get(), buffer.data(), buffer.size(), MSG_TRUNC,
                 reinterpret_cast<sockaddr*>(&sender), &sender_length);
    if (length > static_cast<ssize_t>(buffer.size())) {
      ++events;
    } else if (length > 0) {
      // Other processes may send, too, if they are allowed to.
      if (sender.nl_pid == 0)
        events += count({buffer.data(), static_cast<size_t>(length)});
    } else if (length == 0) {
      return absl::UnavailableError("the kernel's events have ended");
    } else if (errno == ENOBUFS) {
      ++events;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, "read the kernel's events");
    }
  }
  return events;
}

}  // namespace purser::rdma
