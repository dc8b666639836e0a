// SPDX-License-Identifier: Apache-2.0
#include "cli/peer_channel.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kMagic = "PRS";
constexpr char kVersion = 1;
constexpr size_t kHeaderBytes = 8;
constexpr uint32_t kMaxMessageBytes = 64 << 10;

// Until `events` or the deadline.
absl::Status WaitFor(int fd, short events, steady_clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    pollfd entry{fd, events, 0};
    const int ready =
        poll(&entry, 1,
             static_cast<int>(std::max(left.count(), milliseconds::rep{0})));
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return absl::DeadlineExceededError("timed out");
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
  }
}

std::string AddressText(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(address, length, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown address";
  std::string_view text = host;
  // As an IPv4 peer looks to a socket for both families.
  constexpr std::string_view mapped = "::ffff:";
  if (text.starts_with(mapped) && text.find('.') != std::string_view::npos)
    text.remove_prefix(mapped.size());
  const bool v6 = text.find(':') != std::string_view::npos;
  return v6 ? fmt::format("[{}]:{}", text, port)
            : fmt::format("{}:{}", text, port);
}

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::StatusOr<base::FileDescriptor> ConnectTo(
    const addrinfo& address, steady_clock::time_point deadline) {
  base::FileDescriptor socket(::socket(
      address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
      address.ai_protocol));
  if (!socket.valid()) return absl::ErrnoToStatus(errno, "socket");
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return absl::ErrnoToStatus(errno, "connect");
    PURSER_RETURN_IF_ERROR(WaitFor(socket.get(), POLLOUT, deadline));
    int error_number = 0;
    socklen_t size = sizeof(error_number);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error_number, &size);
    if (error_number != 0) return absl::ErrnoToStatus(error_number, "connect");
  }
  SetNoDelay(socket.get());
  return socket;
}

// The message's length.
absl::StatusOr<uint32_t> CheckHeader(const char* header,
                                     const std::string& peer) {
  if (std::string_view(header, kMagic.size()) != kMagic)
    return absl::InvalidArgumentError(fmt::format(
        "{} does not speak the protocol of `purser qp ping`", peer));
  if (header[kMagic.size()] != kVersion)
    return absl::InvalidArgumentError(fmt::format(
        "{} speaks version {} of the ping protocol, this side version {}: use "
        "the same release on both sides",
        peer, int{static_cast<unsigned char>(header[kMagic.size()])},
        int{kVersion}));
  uint32_t length = 0;
  memcpy(&length, header + kHeaderBytes - sizeof(length), sizeof(length));
  length = ntohl(length);
  if (length > kMaxMessageBytes)
    return absl::InvalidArgumentError(
        fmt::format("{} announces a message of {} bytes, at most {} are taken",
                    peer, length, kMaxMessageBytes));
  return length;
}

}  // namespace

absl::StatusOr<HostPort> SplitHostPort(std::string_view address) {
  const size_t colon = address.rfind(':');
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    host = {};
  if (colon == std::string_view::npos || host.empty() ||
      colon + 1 == address.size())
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no HOST:PORT; an IPv6 address stands in brackets, "
                    "[2001:db8::1]:7100",
                    address));
  return HostPort{std::string(host), std::string(address.substr(colon + 1))};
}

PeerChannel::PeerChannel(base::FileDescriptor socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {}

absl::StatusOr<PeerChannel> PeerChannel::Connect(const std::string& address,
                                                 milliseconds timeout) {
  PURSER_ASSIGN_OR_RETURN(HostPort host_port, SplitHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host_port.host.c_str(),
                                    host_port.port.c_str(), &hints, &found);
      error != 0)
    return absl::NotFoundError(
        fmt::format("no address for {}: {}", address, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 freeaddrinfo);
  const auto deadline = steady_clock::now() + timeout;
  absl::Status last;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const std::string text = AddressText(each->ai_addr, each->ai_addrlen);
    auto socket = ConnectTo(*each, deadline);
    if (socket.ok()) return PeerChannel(std::move(*socket), text);
    last = absl::Status(
        socket.status().code(),
        fmt::format("cannot connect to {}: {}; is `purser qp ping --listen` "
                    "running there?",
                    text, std::string(socket.status().message())));
  }
  return last;
}

absl::StatusOr<PeerChannel> PeerChannel::Accept(int listener,
                                                milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  while (true) {
    if (!WaitFor(listener, POLLIN, deadline).ok())
      return absl::DeadlineExceededError(
          fmt::format("no peer connected within {} ms", timeout.count()));
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    base::FileDescriptor socket(
        accept4(listener, generic, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      SetNoDelay(socket.get());
      return PeerChannel(std::move(socket), AddressText(generic, length));
    }
    // Whoever it was hung up before we looked.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      return absl::ErrnoToStatus(errno, "accept");
  }
}

absl::Status PeerChannel::Send(const v1::PingMessage& message,
                               milliseconds timeout) {
  const std::string body = message.SerializeAsString();
  std::string frame(kMagic);
  frame += kVersion;
  const uint32_t length = htonl(static_cast<uint32_t>(body.size()));
  frame.append(reinterpret_cast<const char*>(&length), sizeof(length));
  frame += body;
  const auto deadline = steady_clock::now() + timeout;
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t count = send(socket_.get(), frame.data() + sent,
                               frame.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      if (!WaitFor(socket_.get(), POLLOUT, deadline).ok())
        return absl::DeadlineExceededError(
            fmt::format("{} took nothing for {} ms", peer_, timeout.count()));
    } else if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, "send to " + peer_);
    }
  }
  return absl::OkStatus();
}

absl::Status PeerChannel::Read(char* bytes, size_t count, Deadline deadline) {
  while (count > 0) {
    const ssize_t got = recv(socket_.get(), bytes, count, 0);
    if (got > 0) {
      bytes += got;
      count -= static_cast<size_t>(got);
    } else if (got == 0) {
      return absl::UnavailableError(
          fmt::format("{} ended the connection", peer_));
    } else if (errno == EAGAIN) {
      if (!WaitFor(socket_.get(), POLLIN, deadline).ok())
        return absl::DeadlineExceededError(
            fmt::format("{} says nothing", peer_));
    } else if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, "read from " + peer_);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::PingMessage> PeerChannel::Receive(milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  char header[kHeaderBytes];
  PURSER_RETURN_IF_ERROR(Read(header, sizeof(header), deadline));
  PURSER_ASSIGN_OR_RETURN(const uint32_t length, CheckHeader(header, peer_));
  std::string body(length, '\0');
  PURSER_RETURN_IF_ERROR(Read(body.data(), body.size(), deadline));
  v1::PingMessage message;
  if (!message.ParseFromString(body) ||
      message.message_case() == v1::PingMessage::MESSAGE_NOT_SET)
    return absl::InvalidArgumentError(
        fmt::format("{} sent a message that cannot be understood", peer_));
  return message;
}

bool PeerChannel::Pending() const {
  return WaitFor(socket_.get(), POLLIN, steady_clock::now()).ok();
}

}  // namespace purser::cli
