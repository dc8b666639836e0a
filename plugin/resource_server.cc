// SPDX-License-Identifier: Apache-2.0
#include "plugin/resource_server.h"

#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>

#include "base/logging.h"
#include "base/status_macros.h"
#include "base/unix_socket.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr std::chrono::milliseconds kRebindDeadline{500};

// No longer than any socket's name, so that it never meets the limit of 107
// bytes alone.
std::string TemporaryName() {
  return fmt::format("{}{:06x}", kTemporaryEndpoint,
                     std::random_device()() & 0xffffff);
}

}  // namespace

const char* RegistrationWayName(RegistrationWay way) {
  return way == RegistrationWay::kKubeletSocket ? "kubelet-socket"
                                                : "plugins-registry";
}

ResourceServer::ResourceServer(const Resource& resource, Identity identity,
                               std::function<void()> changed,
                               uint32_t binds_before)
    : resource_(resource),
      identity_(std::move(identity)),
      streams_(ListStreams::Create(changed)),
      service_(resource, streams_),
      registration_(resource.name(), std::move(changed)),
      binds_(binds_before) {}

ResourceServer::~ResourceServer() {
  Stop(std::chrono::system_clock::now() + kRebindDeadline);
}

// gRPC would clobber whatever is at its path when it binds, and again when it
// shuts down, even another process's socket. So it binds a name of its own, and
// a hard link, which never overwrites, gives the socket its real name. Both
// kinds of watcher pass over the hidden name.
absl::Status ResourceServer::Bind(const std::string& directory,
                                  RegistrationWay way) {
  Stop(std::chrono::system_clock::now() + kRebindDeadline);
  endpoint_ = EndpointName::Make(resource_.name(), identity_, ++binds_);
  path_ = directory + "/" + endpoint_.text();
  PURSER_RETURN_IF_ERROR(base::PrepareUnixSocket(path_));
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(
        errno, fmt::format("no right to make a socket in {}; run as root or "
                           "with CAP_DAC_OVERRIDE",
                           directory));
  }
  const std::string temporary = directory + "/" + TemporaryName();
  streams_->Reopen();
  registration_.Reset();
  PURSER_RETURN_IF_ERROR(BindTemporary(temporary, way));
  const bool linked = link(temporary.c_str(), path_.c_str()) == 0;
  const int error = errno;
  unlink(temporary.c_str());
  if (!linked) {
    Stop(std::chrono::system_clock::now() + kRebindDeadline);
    return absl::ErrnoToStatus(error, "make the socket " + path_);
  }
  PURSER_ASSIGN_OR_RETURN(socket_id_, IdentifyFile(path_));
  base::LogInfo("serving", {{"resource", resource_.name()}, {"socket", path_}});
  return absl::OkStatus();
}

absl::Status ResourceServer::BindTemporary(const std::string& path,
                                           RegistrationWay way) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service_);
  if (way == RegistrationWay::kPluginsRegistry)
    builder.RegisterService(&registration_);
  server_ = builder.BuildAndStart();
  if (server_ != nullptr) return absl::OkStatus();
  return absl::InternalError(
      fmt::format("cannot serve {} at {}: gRPC could not bind the socket",
                  resource_.name(), path));
}

absl::StatusOr<bool> ResourceServer::SocketIntact() const {
  if (!socket_id_) return false;
  PURSER_ASSIGN_OR_RETURN(const std::optional<FileId> found,
                          IdentifyFile(path_));
  return found == socket_id_;
}

void ResourceServer::Stop(std::chrono::system_clock::time_point deadline) {
  if (server_ != nullptr) {
    streams_->Close(grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                 "purser-device-plugin closes this socket"));
    server_->Shutdown(deadline);
    server_->Wait();
    server_.reset();
  }
  if (!socket_id_) return;
  absl::StatusOr<std::optional<FileId>> found = IdentifyFile(path_);
  if (found.ok() && *found == socket_id_) unlink(path_.c_str());
  socket_id_.reset();
}

void ResourceServer::Update(std::shared_ptr<const Snapshot> snapshot) {
  service_.Update(std::move(snapshot));
}

}  // namespace purser::plugin
