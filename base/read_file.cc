// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

absl::Status Unreadable(int error, const std::string& path) {
  std::string_view advice = "check the file and its file system";
  if (error == ENOENT || error == ENOTDIR)
    advice = "check the path, and that the volume is mounted";
  if (error == EACCES || error == EPERM)
    advice = "let this process's user read it";
  if (error == EISDIR) advice = "name a file in it";
  const absl::Status status =
      absl::ErrnoToStatus(error, fmt::format("cannot read {}", path));
  return absl::Status(
      status.code(),
      fmt::format("{}; {}", std::string(status.message()), advice));
}

absl::Status CheckRegular(int fd, const std::string& path) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return Unreadable(errno, path);
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  if (S_ISDIR(info.st_mode)) return Unreadable(EISDIR, path);
  return absl::InvalidArgumentError(fmt::format(
      "cannot read {}: it is a pipe or a device; name a regular file", path));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes,
                                     FileKind kind) {
  const bool regular = kind == FileKind::kRegular;
  // A pipe would else be waited for before it can be told what it is.
  const FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK : 0)));
  if (!file.valid()) return Unreadable(errno, path);
  if (regular) PURSER_RETURN_IF_ERROR(CheckRegular(file.get(), path));
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t count = read(file.get(), buffer, sizeof(buffer));
    if (count == 0) return content;
    if (count < 0) {
      if (errno == EINTR) continue;
      return Unreadable(errno, path);
    }
    content.append(buffer, static_cast<size_t>(count));
    if (content.size() > max_bytes)
      return absl::InvalidArgumentError(fmt::format(
          "{} is longer than {} bytes, the most that is read: is it the right "
          "file?",
          path, max_bytes));
  }
}

}  // namespace purser::base
