// SPDX-License-Identifier: Apache-2.0
//
// Names of the plugin's sockets. Each is used once: kubelets know a plugin by
// the path of its socket, and some never let go of one (1.37 refuses for ever a
// path that was registered while it was connected). And several processes may
// serve a resource at one time, as in a rolling update.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace purser::plugin {

// Whose a socket is.
struct Identity {
  // Processes of one installation, of whatever version, replace each other;
  // those of another are not to serve the same resource.
  std::string installation;
  uint64_t started_ms = 0;  // since the node's boot
  static Identity Now(std::string installation);
};

// "purser-rdma_hca-1b2c3d4e-9a3f1.2.sock".
struct EndpointName {
  std::string resource;       // as its name has it: see ResourcePart()
  uint32_t installation = 0;  // a hash
  uint64_t started_ms = 0;    // of the process
  uint32_t serial = 0;        // counts the process's sockets of the resource

  static EndpointName Make(std::string_view resource, const Identity& identity,
                           uint32_t serial);
  // nullopt: another program's.
  static std::optional<EndpointName> Parse(std::string_view file_name);
  std::string text() const;
  bool operator==(const EndpointName&) const = default;
};

// How the names begin that sockets have before they are ready.
inline constexpr std::string_view kTemporaryEndpoint = ".purser-";

uint32_t InstallationHash(std::string_view installation);
uint32_t ResourceHash(std::string_view resource);

// "rdma/hca" -> "rdma_hca", at most 24 characters: a long one is cut, with a
// hash of it at the end.
std::string ResourcePart(std::string_view resource);

}  // namespace purser::plugin
