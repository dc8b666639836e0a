// SPDX-License-Identifier: Apache-2.0
#include "plugin/file_id.h"

#include <sys/stat.h>

#include <cerrno>

namespace purser::plugin {

absl::StatusOr<std::optional<FileId>> IdentifyFile(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return std::nullopt;
    return absl::ErrnoToStatus(error, "stat " + path);
  }
  return FileId{info.st_dev, info.st_ino,
                info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

}  // namespace purser::plugin
