// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "plugin/device_plugin_service.h"
#include "plugin/file_id.h"

namespace purser::plugin {

// Serves one resource on its own unix socket in the kubelet's device-plugins
// directory. Owned by App. Bind() and Stop() belong to one thread at a time
// (App's before the registrar starts and after it stopped, the registrar's in
// between); Update() and the figures may be called from any.
class ResourceServer {
 public:
  // `stream_changed` is called, from gRPC's threads too, when a ListAndWatch
  // stream came or went; it may be called until the last copy is gone.
  ResourceServer(const Resource& resource, std::string directory,
                 std::function<void()> stream_changed);
  ~ResourceServer();

  // Serves on a new socket; an earlier one of this server is closed first, its
  // streams ended. When it returns OK the socket answers. InvalidArgument: the
  // path is too long. NotFound: no directory. AlreadyExists: a live process
  // serves that socket, which is left alone.
  absl::Status Bind();
  // Whether the socket of the last Bind() is still where it was put. The
  // kubelet deletes all sockets when it starts.
  absl::StatusOr<bool> SocketIntact() const;
  // The incarnation of the socket; nullopt when not bound.
  std::optional<FileId> socket_id() const { return socket_id_; }
  // Ends streams and calls, waits for them until `deadline`, and removes the
  // socket. May be called again.
  void Stop(std::chrono::system_clock::time_point deadline);

  void Update(std::shared_ptr<const Snapshot> snapshot);

  const std::string& resource_name() const { return resource_.name(); }
  const std::string& socket_name() const { return socket_name_; }
  const ListStreams& streams() const { return *streams_; }
  const DevicePluginService& service() const { return service_; }

 private:
  absl::Status BindTemporary(const std::string& path);

  const Resource& resource_;
  const std::string directory_, socket_name_, path_;
  const std::shared_ptr<ListStreams> streams_;
  DevicePluginService service_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<FileId> socket_id_;
};

}  // namespace purser::plugin
