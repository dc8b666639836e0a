// SPDX-License-Identifier: Apache-2.0
//
// The TCP connection between two `purser qp ping`: frames of PingMessage, as
// proto/purser/v1/ping.proto lays them out. Whatever the other end sends, or
// does not send, ends in a status that says so within the timeout. One thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "purser/v1/ping.pb.h"

namespace purser::cli {

class PeerChannel {
 public:
  // `address`: "host:port", "[2001:db8::1]:port". Tries every address that the
  // name has.
  static absl::StatusOr<PeerChannel> Connect(const std::string& address,
                                             std::chrono::milliseconds timeout);
  // The next connection to a listening, non-blocking socket.
  static absl::StatusOr<PeerChannel> Accept(int listener,
                                            std::chrono::milliseconds timeout);

  absl::Status Send(const v1::PingMessage& message,
                    std::chrono::milliseconds timeout);
  absl::StatusOr<v1::PingMessage> Receive(std::chrono::milliseconds timeout);
  // Whether Receive() would have something to read: a message or the peer's
  // end.
  bool Pending() const;

  const std::string& peer() const { return peer_; }  // "10.0.0.2:41234"

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  PeerChannel(base::FileDescriptor socket, std::string peer);
  absl::Status Read(char* bytes, size_t count, Deadline deadline);

  base::FileDescriptor socket_;
  std::string peer_;
};

struct HostPort {
  std::string host, port;
};
// InvalidArgument that shows the form.
absl::StatusOr<HostPort> SplitHostPort(std::string_view address);

}  // namespace purser::cli
