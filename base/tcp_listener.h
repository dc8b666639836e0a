// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace purser::base {

struct TcpListener {
  FileDescriptor socket;  // listening, non-blocking
  int port = 0;           // the one bound, when 0 was asked for
};

// InvalidArgument when the address is malformed; nothing is asked of the
// machine.
absl::Status CheckTcpAddress(const std::string& address);
// `address` as HttpServer::Create takes it. AlreadyExists when the port is
// taken, InvalidArgument when the address is malformed.
absl::StatusOr<TcpListener> ListenTcp(const std::string& address);

}  // namespace purser::base
