// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace purser::plugin {

// One incarnation of a file: a file that was removed and made anew has another
// FileId even where the file system hands out the same inode again. The
// modification time is used since, unlike the change time, a chmod or a
// relabelling of the socket leaves it alone.
struct FileId {
  uint64_t device = 0, inode = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileId&) const = default;
};

// nullopt: there is no such file. An error: it could not be told.
absl::StatusOr<std::optional<FileId>> IdentifyFile(const std::string& path);

}  // namespace purser::plugin
