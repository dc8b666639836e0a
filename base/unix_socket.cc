// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file_descriptor.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

// One byte of sun_path is the terminating NUL (unix(7)).
constexpr size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

absl::Status CheckPath(const std::string& path) {
  if (!path.starts_with('/') || path.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(
        fmt::format("socket path {} must be absolute, such as "
                    "/run/purser/purser.sock",
                    QuoteForMessage(path)));
  if (path.size() > kLongestPath)
    return absl::InvalidArgumentError(fmt::format(
        "socket path {} has {} bytes and unix sockets allow {}: shorten it",
        path, path.size(), kLongestPath));
  return absl::OkStatus();
}

absl::Status CheckDirectory(const std::string& path) {
  const std::string directory =
      std::filesystem::path(path).parent_path().string();
  struct stat directory_stat;
  if (stat(directory.c_str(), &directory_stat) != 0) {
    const int error = errno;
    const absl::Status status = absl::ErrnoToStatus(
        error, fmt::format("socket {}: directory {}", path, directory));
    return absl::Status(
        status.code(),
        fmt::format("{}; create it or mount the volume that holds it",
                    std::string(status.message())));
  }
  if (!S_ISDIR(directory_stat.st_mode))
    return absl::FailedPreconditionError(fmt::format(
        "socket {}: {} is not a directory: move it away or choose another path",
        path, directory));
  return absl::OkStatus();
}

// The errno of connecting to the socket at `path`, 0 when something answers.
// Neither waits: a full backlog is EAGAIN.
int ProbeSocket(const std::string& path) {
  const FileDescriptor probe(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return errno;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kLongestPath);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0)
    return errno;
  return 0;
}

absl::Status RemoveStaleSocket(const std::string& path) {
  switch (const int error = ProbeSocket(path)) {
    case ENOENT:
      return absl::OkStatus();
    case ECONNREFUSED:
      break;
    case 0:
    case EAGAIN:
    case EPROTOTYPE:  // bound, by a socket of another type
      return absl::AlreadyExistsError(
          fmt::format("socket {}: another server answers there: stop it or "
                      "choose another path",
                      path));
    default:
      return absl::ErrnoToStatus(
          error, fmt::format("socket {}: cannot tell whether a server still "
                             "uses it (remove it if none does)",
                             path));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return absl::ErrnoToStatus(
        errno, fmt::format("socket {}: cannot remove the stale socket; let "
                           "this process's user write to the directory",
                           path));
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareUnixSocket(const std::string& path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (absl::Status status = CheckDirectory(path); !status.ok()) return status;
  struct stat path_stat;
  if (lstat(path.c_str(), &path_stat) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, fmt::format("socket {}", path));
  }
  if (!S_ISSOCK(path_stat.st_mode))
    return absl::AlreadyExistsError(fmt::format(
        "socket {}: something that is not a socket is in the way: move it or "
        "choose another path",
        path));
  return RemoveStaleSocket(path);
}

bool UnixSocketAnswers(const std::string& path) {
  const int error = ProbeSocket(path);
  return error == 0 || error == EAGAIN;
}

}  // namespace purser::base
