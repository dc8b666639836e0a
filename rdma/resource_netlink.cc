// SPDX-License-Identifier: Apache-2.0
#include "rdma/resource_netlink.h"

#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

// More than the kernel puts into one datagram of a dump.
constexpr size_t kDatagramBytes = 64 << 10;

absl::Status StatusOfLibnl(int error, std::string_view what) {
  const std::string message = fmt::format("{}: {}", what, nl_geterror(error));
  switch (-error) {
    case NLE_AGAIN:
      return absl::DeadlineExceededError(message);
    case NLE_PERM:
      return absl::PermissionDeniedError(message);
    case NLE_PROTO_MISMATCH:
    case NLE_AF_NOSUPPORT:
    case NLE_OPNOTSUPP:
      return absl::UnimplementedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

class LibnlTransport : public NetlinkTransport {
 public:
  LibnlTransport() : socket_(nl_socket_alloc(), nl_socket_free) {}

  absl::Status Connect(std::chrono::milliseconds timeout) {
    if (socket_ == nullptr)
      return absl::ResourceExhaustedError("nl_socket_alloc: out of memory");
    if (const int error = nl_connect(socket_.get(), NETLINK_RDMA); error < 0)
      return StatusOfLibnl(error, "open a socket of NETLINK_RDMA");
    nl_socket_set_msg_buf_size(socket_.get(), kDatagramBytes);
    const auto microseconds =
        std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
    const timeval patience{.tv_sec = microseconds / 1'000'000,
                           .tv_usec = microseconds % 1'000'000};
    if (setsockopt(nl_socket_get_fd(socket_.get()), SOL_SOCKET, SO_RCVTIMEO,
                   &patience, sizeof(patience)) != 0)
      return absl::ErrnoToStatus(errno, "SO_RCVTIMEO on RDMA netlink");
    return absl::OkStatus();
  }

  absl::Status Exchange(
      Bytes request,
      absl::FunctionRef<absl::StatusOr<Answer>(Bytes)> on_datagram) override {
    // libnl takes no const.
    auto* bytes = const_cast<std::byte*>(request.data());
    if (const int error = nl_sendto(socket_.get(), bytes, request.size());
        error < 0)
      return StatusOfLibnl(error, "ask RDMA netlink");
    for (;;) {
      sockaddr_nl sender{};
      unsigned char* buffer = nullptr;
      const int length = nl_recv(socket_.get(), &sender, &buffer, nullptr);
      const std::unique_ptr<unsigned char, void (*)(void*)> owned(buffer, free);
      if (length <= 0)
        return StatusOfLibnl(length == 0 ? -NLE_AGAIN : length,
                             "wait for RDMA netlink");
      if (sender.nl_pid != 0) continue;  // not from the kernel
      PURSER_ASSIGN_OR_RETURN(
          const Answer answer,
          on_datagram({reinterpret_cast<const std::byte*>(buffer),
                       static_cast<size_t>(length)}));
      if (answer == Answer::kDone) return absl::OkStatus();
    }
  }

 private:
  const std::unique_ptr<nl_sock, void (*)(nl_sock*)> socket_;
};

absl::Status Named(const absl::Status& status, std::string_view what) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      fmt::format("{}: {}", what, std::string(status.message())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetlinkTransport>> OpenRdmaNetlink(
    std::chrono::milliseconds timeout) {
  auto transport = std::make_unique<LibnlTransport>();
  PURSER_RETURN_IF_ERROR(transport->Connect(timeout));
  return transport;
}

absl::StatusOr<std::vector<NetlinkDevice>> ResourceNetlink::Devices() {
  std::vector<NetlinkDevice> devices;
  PURSER_RETURN_IF_ERROR(Named(transport_.Exchange(DevicesRequest(),
                                                   [&](Bytes datagram) {
                                                     return ParseDevices(
                                                         datagram, &devices);
                                                   }),
                               "list the RDMA devices"));
  return devices;
}

absl::StatusOr<NamespaceMode> ResourceNetlink::Mode() {
  std::optional<NamespaceMode> mode;
  PURSER_RETURN_IF_ERROR(Named(transport_.Exchange(NamespaceModeRequest(),
                                                   [&](Bytes datagram) {
                                                     return ParseNamespaceMode(
                                                         datagram, &mode);
                                                   }),
                               "ask for the mode of RDMA network namespaces"));
  if (!mode)
    return absl::UnimplementedError(
        "this kernel does not tell the mode of RDMA network namespaces");
  return *mode;
}

absl::Status ResourceNetlink::Dump(
    ResourceKind kind, uint32_t device_index,
    absl::FunctionRef<void(const ResourceRecord&)> visit) {
  return Named(
      transport_.Exchange(ResourcesRequest(kind, device_index),
                          [&](Bytes datagram) {
                            return ParseResources(datagram, kind, visit);
                          }),
      fmt::format("list the {} of RDMA device {}", ResourceKindName(kind),
                  device_index));
}

absl::StatusOr<std::vector<std::byte>> ResourceNetlink::RawQueuePair(
    uint32_t device_index, uint32_t local_qpn) {
  std::vector<std::byte> raw;
  PURSER_RETURN_IF_ERROR(Named(
      transport_.Exchange(
          RawQueuePairRequest(device_index, local_qpn),
          [&](Bytes datagram) { return ParseRawQueuePair(datagram, &raw); }),
      fmt::format("read queue pair {} of RDMA device {}", local_qpn,
                  device_index)));
  return raw;
}

}  // namespace purser::rdma
