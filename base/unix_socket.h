// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace purser::base {

// Makes ready to bind a unix socket at `path`: InvalidArgument when the path is
// over 107 bytes (sockaddr_un) or not absolute, NotFound when its directory
// does not exist, AlreadyExists when a live server answers there or something
// that is no socket is in the way; a stale socket (nobody answers) is unlinked.
// Does not wait. Two processes that prepare the same path at the same time can
// both succeed: the later one then takes the path over.
absl::Status PrepareUnixSocket(const std::string& path);

// Whether a server listens at `path`. Does not wait.
bool UnixSocketAnswers(const std::string& path);

}  // namespace purser::base
