// SPDX-License-Identifier: Apache-2.0
#include "base/tcp_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/status_macros.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

constexpr int kBacklog = 128;

struct HostPort {
  std::string host;  // without brackets; "": all
  uint16_t port = 0;
};

std::optional<HostPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  HostPort result{.host = address.substr(0, colon)};
  const std::string port = address.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || end != port.data() + port.size())
    return std::nullopt;
  const bool brackets =
      result.host.starts_with('[') && result.host.ends_with(']');
  if (brackets) result.host = result.host.substr(1, result.host.size() - 2);
  // Only IPv6 has colons in it, and only IPv6 stands in brackets.
  const bool ipv6 = result.host.find(':') != std::string::npos;
  if (brackets != ipv6) return std::nullopt;
  return result;
}

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

std::optional<SocketAddress> ToSocketAddress(const std::string& host,
                                             uint16_t port) {
  SocketAddress result;
  auto* ipv4 = reinterpret_cast<sockaddr_in*>(&result.storage);
  if (inet_pton(AF_INET, host.c_str(), &ipv4->sin_addr) == 1) {
    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons(port);
    result.length = sizeof(sockaddr_in);
    return result;
  }
  auto* ipv6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
  if (inet_pton(AF_INET6, host.c_str(), &ipv6->sin6_addr) == 1) {
    ipv6->sin6_family = AF_INET6;
    ipv6->sin6_port = htons(port);
    result.length = sizeof(sockaddr_in6);
    return result;
  }
  return std::nullopt;
}

std::string AnyIfEmpty(const std::string& host) {
  return host.empty() ? "::" : host;
}

absl::Status Refused(int error, const std::string& address,
                     std::string_view call) {
  if (error == EADDRINUSE)
    return absl::AlreadyExistsError(fmt::format(
        "cannot listen on {}: the port is taken by another process (in a pod "
        "with hostNetwork, perhaps of another pod): stop it or choose another "
        "port",
        address));
  return absl::ErrnoToStatus(
      error, fmt::format("cannot listen on {}: {}", address, call));
}

absl::StatusOr<TcpListener> Bind(const SocketAddress& to,
                                 const std::string& address) {
  const auto* name = reinterpret_cast<const sockaddr*>(&to.storage);
  TcpListener listener{.socket = FileDescriptor(socket(
                           to.storage.ss_family,
                           SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  const int fd = listener.socket.get();
  if (fd < 0) return Refused(errno, address, "socket");
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (to.storage.ss_family == AF_INET6)  // "[::]" takes IPv4, too
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (bind(fd, name, to.length) != 0) return Refused(errno, address, "bind");
  if (listen(fd, kBacklog) != 0) return Refused(errno, address, "listen");
  SocketAddress bound{.length = sizeof(sockaddr_storage)};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage),
                  &bound.length) != 0)
    return Refused(errno, address, "getsockname");
  // The port is in the same place for both families.
  listener.port =
      ntohs(reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port);
  return listener;
}

}  // namespace

absl::Status CheckTcpAddress(const std::string& address) {
  const std::optional<HostPort> parsed = SplitAddress(address);
  if (parsed && ToSocketAddress(AnyIfEmpty(parsed->host), parsed->port))
    return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "address {} is malformed: write IP:PORT, [IPv6]:PORT or :PORT (all "
      "addresses) with a port from 0 to 65535",
      QuoteForMessage(address)));
}

absl::StatusOr<TcpListener> ListenTcp(const std::string& address) {
  PURSER_RETURN_IF_ERROR(CheckTcpAddress(address));
  const std::optional<HostPort> parsed = SplitAddress(address);
  const std::optional<SocketAddress> to =
      ToSocketAddress(AnyIfEmpty(parsed->host), parsed->port);
  absl::StatusOr<TcpListener> listener = Bind(*to, address);
  // ":PORT" stands for all addresses that there are: kernels may lack IPv6.
  if (parsed->host.empty() && !listener.ok() &&
      !absl::IsAlreadyExists(listener.status()))
    return Bind(*ToSocketAddress("0.0.0.0", parsed->port), address);
  return listener;
}

}  // namespace purser::base
