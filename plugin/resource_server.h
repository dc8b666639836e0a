// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "plugin/device_plugin_service.h"
#include "plugin/endpoint_name.h"
#include "plugin/file_id.h"
#include "plugin/registration_service.h"

namespace purser::plugin {

// How the kubelet gets to know of a resource.
enum class RegistrationWay {
  kKubeletSocket,    // we call Register on its socket in device-plugins
  kPluginsRegistry,  // it finds our socket in plugins_registry and calls us
};
const char* RegistrationWayName(RegistrationWay way);  // "kubelet-socket", …

// Serves one resource on its own unix socket in one of the kubelet's
// directories. Owned by App. Bind() and Stop() belong to one thread at a time
// (App's before the registrar starts and after it stopped, the registrar's in
// between); Update() and the figures may be called from any.
class ResourceServer {
 public:
  // `changed` is called, from gRPC's threads too, when a ListAndWatch stream
  // came or went, or the kubelet asked for a registration; it may be called
  // until the last copy is gone. `binds_before`: of other servers of the same
  // resource in this process, whose names are not to be used again.
  ResourceServer(const Resource& resource, Identity identity,
                 std::function<void()> changed, uint32_t binds_before = 0);
  ~ResourceServer();

  // Serves on a new socket, of a name that it had never before; an earlier one
  // of this server is closed first, its streams ended. When it returns OK the
  // socket answers. InvalidArgument: the path is too long. NotFound: no
  // directory.
  absl::Status Bind(const std::string& directory, RegistrationWay way);
  // Whether the socket of the last Bind() is still where it was put. The
  // kubelet deletes all sockets in device-plugins when it starts.
  absl::StatusOr<bool> SocketIntact() const;
  // The incarnation of the socket; nullopt when not bound.
  std::optional<FileId> socket_id() const { return socket_id_; }
  // Ends streams and calls, waits for them until `deadline`, and removes the
  // socket. May be called again.
  void Stop(std::chrono::system_clock::time_point deadline);

  void Update(std::shared_ptr<const Snapshot> snapshot);

  const std::string& resource_name() const { return resource_.name(); }
  const Identity& identity() const { return identity_; }
  // Of the last Bind().
  const EndpointName& endpoint() const { return endpoint_; }
  const ListStreams& streams() const { return *streams_; }
  const DevicePluginService& service() const { return service_; }
  const RegistrationService& registration() const { return registration_; }

 private:
  absl::Status BindTemporary(const std::string& path, RegistrationWay way);

  const Resource& resource_;
  const Identity identity_;
  const std::shared_ptr<ListStreams> streams_;
  DevicePluginService service_;
  RegistrationService registration_;
  uint32_t binds_;
  EndpointName endpoint_;
  std::string path_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<FileId> socket_id_;
};

}  // namespace purser::plugin
