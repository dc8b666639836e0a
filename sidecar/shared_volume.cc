// SPDX-License-Identifier: Apache-2.0
#include "sidecar/shared_volume.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "base/unix_socket.h"
#include "rdma/verbs.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

std::string HowToMount(const std::string& directory) {
  return fmt::format(
      "the pod's spec needs volumes: [{{name: purser, emptyDir: {{medium: "
      "Memory}}}}], and the sidecar's and the application's container "
      "volumeMounts: [{{name: purser, mountPath: {}}}]",
      directory);
}

absl::Status CheckDirectory(const std::string& directory) {
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) {
    const int error = errno;
    return absl::FailedPreconditionError(
        fmt::format("no shared volume at {} ({}): {}", directory,
                    rdma::ErrnoName(error), HowToMount(directory)));
  }
  if (S_ISDIR(status.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("no shared volume at {}, which is not a directory: {}",
                  directory, HowToMount(directory)));
}

std::string WhatToDo(int error, const std::string& directory) {
  switch (error) {
    case EROFS:
      return "it is read-only: take readOnly: true out of the sidecar's "
             "volumeMounts; where no volume is mounted there, " +
             HowToMount(directory);
    case EACCES:
    case EPERM:
      return fmt::format(
          "user {} may not write there: set securityContext.fsGroup in the "
          "pod's spec to a group that the volume then belongs to",
          geteuid());
    case ENOSPC:
    case EDQUOT:
      return "it is full: remove files from it, or raise sizeLimit of the "
             "pod's emptyDir";
    case ENOMEM:
      return "no memory is left for a file in it: raise "
             "resources.limits.memory "
             "of the sidecar's container";
    default:
      return "is it a file system that can hold a unix socket?";
  }
}

// gRPC tells only that it cannot listen, not why.
absl::Status TryToListen(const std::string& directory,
                         const std::string& path) {
  const base::FileDescriptor socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::ErrnoToStatus(errno, "socket");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0) {
    const int error = errno;
    return absl::FailedPreconditionError(
        fmt::format("no socket can be made in the shared volume: bind {}: {}; "
                    "{}",
                    path, rdma::ErrnoName(error), WhatToDo(error, directory)));
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareSharedVolume(const std::string& directory,
                                 const std::string& socket) {
  PURSER_RETURN_IF_ERROR(CheckDirectory(directory));
  PURSER_RETURN_IF_ERROR(base::PrepareUnixSocket(socket));
  return TryToListen(directory, socket);
}

}  // namespace purser::sidecar
