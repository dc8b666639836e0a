// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin/endpoint_name.h"

namespace purser::plugin {

struct LiveEndpoint {
  EndpointName name;
  std::chrono::system_clock::time_point bound_at;
};

// The sockets that other processes of this program serve in one of the
// kubelet's directories. Those that nobody serves any more (a process was
// killed) are removed: the kubelet would dial a dead one in its
// plugins_registry again and again. Nothing at all where the directory does not
// exist. Does not wait.
absl::StatusOr<std::vector<LiveEndpoint>> FindLiveEndpoints(
    const std::string& directory, const Identity& own);

}  // namespace purser::plugin
